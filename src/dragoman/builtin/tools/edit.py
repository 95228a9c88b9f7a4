"""Replace exact text in a file, once or several times."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from dragoman.builtin.errors import ToolError
from dragoman.builtin.tools.context import ToolContext
from dragoman.builtin.tools.tool import Intent, Result, Subject, Tool, diff_content
from dragoman.builtin.tools.write import folder_scope


class Replacement(msgspec.Struct, forbid_unknown_fields=True):
    old: Annotated[str, Meta(description="The exact text to replace, with enough around it to be unique.")]
    new: Annotated[str, Meta(description="What takes its place.")]
    all: Annotated[bool, Meta(description="Replace every occurrence.")] = False


class Arguments(msgspec.Struct, forbid_unknown_fields=True):
    path: Annotated[str, Meta(description="The file to change.")]
    edits: Annotated[
        list[Replacement],
        Meta(min_length=1, description="Made one after the other, each on the outcome of the one before."),
    ]


def subject(context: ToolContext, arguments: Arguments) -> Subject:
    path = context.workspace.path(arguments.path)
    return Subject(f"Edit {context.workspace.show(path)}", [{"path": path}], folder_scope(context, path))


async def prepare(context: ToolContext, arguments: Arguments) -> Intent:
    workspace = context.workspace
    path = workspace.path(arguments.path)
    before = await workspace.current(path)
    if before is None:
        raise ToolError(f"There is no file {workspace.show(path)}.")
    after = before
    for number, edit in enumerate(arguments.edits, start=1):
        after = replace(after, edit, f"Edit {number} of {workspace.show(path)}")
    diff = diff_content(path, before, after)
    line = before.count("\n", 0, _first_difference(before, after)) + 1

    async def act() -> Result:
        await workspace.write(path, after, before)
        count = len(arguments.edits)
        return Result(f"Edited {workspace.show(path)}: {count} change{'s' * (count > 1)}.", [diff])

    return Intent(
        f"Edit {workspace.show(path)}",
        act,
        [{"path": path, "line": line}],
        [diff],
        folder_scope(context, path),
    )


def replace(text: str, edit: Replacement, what: str) -> str:
    """The text with the replacement made; refuses what is missing, ambiguous or changes nothing."""
    if not edit.old:
        raise ToolError(f"{what}: the text to replace is empty.")
    if edit.old == edit.new:
        raise ToolError(f"{what}: the old and the new text are the same.")
    count = text.count(edit.old)
    if count == 0:
        raise ToolError(
            f"{what}: the text to replace is not in the file. It must match exactly: read the file."
        )
    if count > 1 and not edit.all:
        raise ToolError(
            f"{what}: the text to replace is there {count} times. Give more of what is around it, or set all."
        )
    return text.replace(edit.old, edit.new)


def _first_difference(before: str, after: str) -> int:
    for index, (one, other) in enumerate(zip(before, after, strict=False)):
        if one != other:
            return index
    return min(len(before), len(after))


edit = Tool(
    "edit",
    "edit",
    "write",
    "Change a file by replacing exact text. Several edits of one file go into one call.",
    Arguments,
    prepare,
    subject,
)
