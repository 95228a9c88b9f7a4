"""Translates the content blocks of a prompt for a model; what the model cannot take is left out and reported."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from pydantic_ai.messages import BinaryContent

from dragoman.builtin.errors import ToolError
from dragoman.wire.errors import invalid_params

if TYPE_CHECKING:
    from dragoman.builtin.files.workspace import Workspace
    from dragoman.builtin.models.llm import Llm

Json = dict[str, Any]
Content = str | BinaryContent

MAX_LINKED_LINES = 2000


class Prompt:
    """Translates the blocks of one prompt."""

    def __init__(self, workspace: Workspace, llm: Llm) -> None:
        self._workspace = workspace
        self._llm = llm
        self.refusals: list[str] = []
        """What was left out and why; shown to the user."""

    async def content(self, blocks: Sequence[Json]) -> list[Content]:
        found: list[Content] = []
        for block in blocks:
            kind = block.get("type")
            if kind == "text":
                found.append(str(block.get("text", "")))
            elif kind in ("image", "audio"):
                found += self._media(block.get("data"), str(block.get("mimeType") or f"{kind}/unknown"), kind)
            elif kind == "resource":
                found += self._embedded(block.get("resource"))
            elif kind == "resource_link":
                found += await self._linked(block)
            else:
                raise invalid_params(f"Unknown content type: {kind!r}", "content")
        return found

    def _media(self, data: object, media_type: str, what: str) -> list[Content]:
        try:
            raw = base64.b64decode(str(data), validate=True)
        except (binascii.Error, ValueError) as error:
            raise invalid_params(f"The data of the {what} is not base64", "content") from error
        if not self._llm.accepts(media_type):
            self.refusals.append(f"{self._llm.name} cannot take {media_type}: the {what} was left out.")
            return []
        return [BinaryContent(raw, media_type=media_type)]

    def _embedded(self, resource: object) -> list[Content]:
        if not isinstance(resource, dict):
            raise invalid_params("A resource block needs a resource", "content")
        uri = str(resource.get("uri", ""))
        if isinstance(resource.get("text"), str):
            return [_quoted(uri, resource["text"])]
        media_type = str(resource.get("mimeType") or "application/octet-stream")
        return [f"The file {uri}:", *self._media(resource.get("blob"), media_type, f"file {uri}")]

    async def _linked(self, link: Json) -> list[Content]:
        uri = str(link.get("uri", ""))
        name = str(link.get("name") or uri)
        path = _local(uri)
        if path is None:
            return [f"[a link to {name}: {uri}]"]
        try:
            text = await self._workspace.read(self._workspace.path(path), 1, MAX_LINKED_LINES)
        except (ToolError, FileNotFoundError) as error:
            return [f"[a link to {name} ({uri}), which was not read: {error}]"]
        return [_quoted(uri, text.content)]


def _quoted(uri: str, text: str) -> str:
    return f'<file uri="{uri}">\n{text}\n</file>'


def _local(uri: str) -> str | None:
    parts = urlsplit(uri)
    if parts.scheme == "file":
        return unquote(parts.path)
    return uri if uri.startswith("/") else None
