"""Show what this session changed; a tool for `/diff` alone, which models are not offered."""

from __future__ import annotations

import msgspec

from dragoman.builtin.tools.context import ToolContext
from dragoman.builtin.tools.tool import Intent, Result, Tool, diff_content, diff_text

AS_BEFORE = "This session has changed files, and all of them are as they were before."


class Arguments(msgspec.Struct, forbid_unknown_fields=True):
    pass


async def prepare(context: ToolContext, arguments: Arguments) -> Intent:
    workspace = context.workspace
    originals = dict(workspace.originals)

    async def act() -> Result:
        diffs, text = [], ""
        for path, before in originals.items():
            now = await workspace.whole(path) if await workspace.exists(path) else ""
            diffs.append(diff_content(path, before, now))
            text += diff_text(workspace.show(path), before, now)
        return Result(text or AS_BEFORE, diffs, text_says_all=True)

    title = f"Changes of this session in {len(originals)} file{'s' * (len(originals) != 1)}"
    # The diffs come with the result alone: in a question they would stand for changes to be made.
    return Intent(title, act, [{"path": path} for path in originals])


changes = Tool(
    "changes",
    "read",
    "read",
    "Show how the files that this session changed differ from what they were before.",
    Arguments,
    prepare,
)
