"""Write a whole file."""

from __future__ import annotations

from pathlib import PurePath
from typing import Annotated

import msgspec
from msgspec import Meta

from dragoman.builtin.errors import ToolError
from dragoman.builtin.tools.context import ToolContext
from dragoman.builtin.tools.tool import Intent, Result, Scope, Subject, Tool, diff_content


class Arguments(msgspec.Struct, forbid_unknown_fields=True):
    path: Annotated[str, Meta(description="The file; missing folders are made.")]
    content: Annotated[str, Meta(description="All that the file shall contain.")]


def subject(context: ToolContext, arguments: Arguments) -> Subject:
    path = context.workspace.path(arguments.path)
    return Subject(f"Write {context.workspace.show(path)}", [{"path": path}], folder_scope(context, path))


async def prepare(context: ToolContext, arguments: Arguments) -> Intent:
    workspace = context.workspace
    path = workspace.path(arguments.path)
    before = await workspace.current(path)
    if before and not workspace.was_read(path):
        raise ToolError(f"{workspace.show(path)} exists already: read it before you overwrite it.")
    diff = diff_content(path, before, arguments.content)

    async def act() -> Result:
        await workspace.write(path, arguments.content, before)
        done = "Wrote" if before is not None else "Made"
        return Result(f"{done} {workspace.show(path)}.", [diff])

    verb = "Write" if before is not None else "Make"
    return Intent(
        f"{verb} {workspace.show(path)}", act, [{"path": path}], [diff], folder_scope(context, path)
    )


def folder_scope(context: ToolContext, path: str) -> Scope:
    """What "always" covers for a change: the files in its folder and below."""
    folder = context.workspace.show(str(PurePath(path).parent))
    where = "this workspace" if folder == "." else f"{folder}/"
    return Scope(f"write:{PurePath(path).parent}", f"changes in {where}")


write = Tool(
    "write",
    "edit",
    "write",
    "Write a whole file. To change a part of a file, use edit.",
    Arguments,
    prepare,
    subject,
)
