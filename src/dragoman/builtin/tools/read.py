"""Read a file, or a part of it."""

from __future__ import annotations

import base64
from pathlib import PurePath
from typing import Annotated

import msgspec
from msgspec import Meta

from dragoman.builtin.errors import ToolError
from dragoman.builtin.tools.context import ToolContext
from dragoman.builtin.tools.tool import Intent, Picture, Result, Tool, text_content

MAX_LINES = 2000
MAX_CHARACTERS = 256 * 1024
"""A model cannot use more in one answer; it asks for the next part."""

MAX_PICTURE_BYTES = 5 * 1024 * 1024
"""What providers accept."""

PICTURES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
}


class Arguments(msgspec.Struct, forbid_unknown_fields=True):
    path: Annotated[str, Meta(description="The file, relative to the working folder or absolute.")]
    line: Annotated[int, Meta(ge=1, description="The first line to read, from 1.")] = 1
    limit: Annotated[int | None, Meta(description="How many lines; by default as many as fit.")] = None


async def prepare(context: ToolContext, arguments: Arguments) -> Intent:
    path = context.workspace.path(arguments.path)
    location = {"path": path, "line": arguments.line}
    if arguments.limit is not None and arguments.limit < 1:
        raise ToolError("limit must be at least 1.")

    async def act() -> Result:
        media_type = PICTURES.get(PurePath(path).suffix.lower())
        if media_type is not None:
            return await _picture(context, path, media_type)
        return await _text(context, path, arguments.line, arguments.limit)

    return Intent(f"Read {_part(context.workspace.show(path), arguments)}", act, [location])


async def _text(context: ToolContext, path: str, line: int, limit: int | None) -> Result:
    shown = context.workspace.show(path)
    try:
        found = await context.workspace.read(path, line, min(limit or MAX_LINES, MAX_LINES))
    except FileNotFoundError as error:
        raise ToolError(str(error)) from error
    if not found.content and line > 1:
        return Result(f"{shown} has no line {line}.")
    text = found.content
    if len(text) > MAX_CHARACTERS:
        text = text[:MAX_CHARACTERS]
        return Result(f"{text}\n[cut after {MAX_CHARACTERS} characters; read on with line and limit]")
    total = found.total_lines
    if total is None or found.last_line < total:
        of = f" of {total}" if total is not None else ""
        note = f"[lines {found.first_line} to {found.last_line}{of}; read on with line={found.last_line + 1}]"
        return Result(f"{text}\n{note}")
    return Result(text or f"[{shown} is empty]")


async def _picture(context: ToolContext, path: str, media_type: str) -> Result:
    try:
        data = await context.workspace.data(path, MAX_PICTURE_BYTES)
    except FileNotFoundError as error:
        raise ToolError(str(error)) from error
    shown = context.workspace.show(path)
    note = f"{shown}: {media_type}, {len(data)} bytes"
    image = {"type": "image", "data": base64.b64encode(data).decode(), "mimeType": media_type}
    content = [text_content(note), {"type": "content", "content": image}]
    return Result(note, content, output=note, pictures=[Picture(data, media_type)])


def _part(shown: str, arguments: Arguments) -> str:
    if arguments.limit is not None:
        return f"{shown}, lines {arguments.line} to {arguments.line + arguments.limit - 1}"
    return f"{shown} from line {arguments.line}" if arguments.line > 1 else shown


read = Tool(
    "read",
    "read",
    "read",
    "Read a text file (or an image) of the workspace. Long files come in parts: go on with `line`.",
    Arguments,
    prepare,
)
