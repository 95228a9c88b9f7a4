"""What is sent for a typed line: its text, `@` files as links, images as such."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import unquote

from dragoman.cli.chat.lines.markdown import safe
from dragoman.wire.json_types import JsonObject, objects, own_meta

MOST_IMAGE_BYTES = 5_000_000
"""A larger image is linked: models refuse it."""
IMAGE_TYPES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
}
_SUFFIX = r"\.(?:png|jpe?g|gif|webp)"
_IMAGE = re.compile(
    rf"""(?:^|(?<=[\s(]))@?(?:'([^'\n]+{_SUFFIX})'|"([^"\n]+{_SUFFIX})"|"""
    rf"""((?:[^\s\\'"]|\\ )+{_SUFFIX})(?=[\s,.;:!?)]|$))""",
    re.IGNORECASE,
)
LOOKED_AT = 20_000
"""Characters at the beginning of a prompt that are searched for images: more was pasted, not typed."""
_FILE = re.compile(r"(?:^|(?<=\s))@(\S+)")


def blocks_of(text: str, folder: Path) -> list[JsonObject]:
    """The content of a prompt: the text, a link to each file that it names with `@`, and the images that it names."""
    blocks: list[JsonObject] = [{"type": "text", "text": text}]
    images = list(_images(text, folder))
    names = (name.rstrip(",.;:!?)") for name in _FILE.findall(text))
    for name in dict.fromkeys(names):
        path = folder / name
        if path.is_file() and path not in images:
            blocks.append(_link(path))
    for path in images:
        blocks.append(_image(path) or _link(path))
    return blocks


def without_images(blocks: Sequence[JsonObject]) -> list[JsonObject]:
    """The same prompt for an agent that takes no images: links instead of them."""
    return [
        {"type": "resource_link", "name": Path(str(block["uri"])).name, "uri": block["uri"]}
        if block.get("type") == "image"
        else block
        for block in blocks
    ]


def _images(text: str, folder: Path) -> Iterator[Path]:
    """Images that a text names: as paths, also as a terminal pastes them, quoted or with `\\` before spaces."""
    found: set[Path] = set()
    for match in _IMAGE.finditer(text[:LOOKED_AT]):
        name = match[1] or match[2] or match[3].replace("\\ ", " ")
        path = folder / Path(unquote(name.removeprefix("file://"))).expanduser()
        if path not in found and path.is_file():
            found.add(path)
            yield path


def _image(path: Path) -> JsonObject | None:
    """An image as content; None if it cannot be read or is too large."""
    try:
        if path.stat().st_size > MOST_IMAGE_BYTES:
            return None
        data = base64.b64encode(path.read_bytes()).decode()
    except OSError:
        return None
    return {
        "type": "image",
        "data": data,
        "mimeType": IMAGE_TYPES[path.suffix.lower()],
        "uri": path.absolute().as_uri(),
    }


def _link(path: Path) -> JsonObject:
    return {"type": "resource_link", "name": path.name, "uri": path.absolute().as_uri()}


def edited_text(result: JsonObject) -> str | None:
    """The text of a prompt that another client changed while it waited, from the answer when it was taken out."""
    return text_of_prompt(objects(own_meta(result).get("prompt")))


def text_of_prompt(blocks: Sequence[JsonObject]) -> str | None:
    """The text of a prompt; None if it has none."""
    texts = [str(block.get("text")) for block in blocks if block.get("type") == "text"]
    return safe("\n".join(texts)) if texts else None
