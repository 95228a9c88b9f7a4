"""Check or stop a command in the background."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from dragoman.builtin.tools.context import ToolContext
from dragoman.builtin.tools.tool import Intent, Result, Tool


class Arguments(msgspec.Struct, forbid_unknown_fields=True):
    id: Annotated[str, Meta(description="What run answered.")]


async def prepare_check(context: ToolContext, arguments: Arguments) -> Intent:
    command = context.commands.find(arguments.id)

    async def act() -> Result:
        output = await command.output()
        return Result(f"{output.text.rstrip()}\n[{output.describe()}]".lstrip())

    return Intent(f"Look at command {arguments.id}", act)


async def prepare_stop(context: ToolContext, arguments: Arguments) -> Intent:
    command = context.commands.find(arguments.id)

    async def act() -> Result:
        await command.kill()
        output = await command.output()
        context.commands.background.pop(arguments.id, None)
        await command.release()
        return Result(f"{output.text.rstrip()}\n[{output.describe()}]".lstrip())

    return Intent(f"End command {arguments.id}", act)


check_command = Tool(
    "check_command",
    "execute",
    "read",
    "The output so far of a command that runs in the background.",
    Arguments,
    prepare_check,
)
stop_command = Tool(
    "stop_command", "execute", "note", "End a command that runs in the background.", Arguments, prepare_stop
)
