"""Update the plan that the user sees."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from dragoman.builtin.tools.context import ToolContext
from dragoman.builtin.tools.tool import Intent, Result, Tool


class Entry(msgspec.Struct, forbid_unknown_fields=True):
    content: Annotated[str, Meta(min_length=1, description="The step, in a few words.")]
    status: Literal["pending", "in_progress", "completed"] = "pending"
    priority: Literal["high", "medium", "low"] = "medium"


class Arguments(msgspec.Struct, forbid_unknown_fields=True):
    entries: Annotated[list[Entry], Meta(description="The whole plan; it replaces the one before.")]


async def prepare(context: ToolContext, arguments: Arguments) -> Intent:
    async def act() -> Result:
        entries = [msgspec.to_builtins(entry) for entry in arguments.entries]
        context.set_plan(entries)
        done = sum(entry.status == "completed" for entry in arguments.entries)
        return Result(f"The plan has {len(entries)} steps, {done} done.", output=entries)

    return Intent("Update the plan", act)


plan = Tool(
    "plan",
    "think",
    "note",
    "Show the user a plan of several steps, and keep their status up to date while you work.",
    Arguments,
    prepare,
)
