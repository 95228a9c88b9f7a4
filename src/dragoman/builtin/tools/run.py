"""Run a command."""

from __future__ import annotations

import asyncio
import re
from typing import Annotated

import msgspec
from msgspec import Meta

from dragoman.builtin.running_commands import Output, RunningCommand, shell
from dragoman.builtin.sandbox.box import boxed
from dragoman.builtin.tools.context import ToolContext
from dragoman.builtin.tools.tool import Intent, Json, Result, Scope, Tool, fence_for, text_content

DEFAULT_SECONDS = 120
MAX_SECONDS = 3600
STREAM_INTERVAL = 0.25
"""Seconds between two updates of the shown output: a build may print a thousand lines a second."""

_PLAIN_COMMAND = re.compile(r"[\w./+,:@%=^~ -]+")
"""A command without anything that a shell would treat as more than one command."""

_WITH_SUBCOMMANDS = frozenset(
    {"git", "npm", "cargo", "make", "uv", "pip", "go", "docker", "podman", "pnpm", "yarn"}
)
"""Programs whose subcommands must be allowed separately: `git status` is not `git push`."""

_WRAPPERS = frozenset(
    {
        "env",
        "sudo",
        "doas",
        "nice",
        "nohup",
        "timeout",
        "time",
        "xargs",
        "exec",
        "command",
        "sh",
        "bash",
        "zsh",
    }
)
"""Programs that run another command, which their name does not show."""


class Arguments(msgspec.Struct, forbid_unknown_fields=True):
    command: Annotated[str, Meta(min_length=1, description="The command line, for a shell.")]
    path: Annotated[str, Meta(description="The folder to run it in; by default the working folder.")] = "."
    timeout: Annotated[int, Meta(ge=1, le=MAX_SECONDS, description="Seconds until it is ended.")] = (
        DEFAULT_SECONDS
    )
    background: Annotated[
        bool, Meta(description="Do not wait for it: for servers. Ask about it with check_command.")
    ] = False


async def prepare(context: ToolContext, arguments: Arguments) -> Intent:
    folder = cwd = context.workspace.folder(arguments.path)
    words = shell(arguments.command)
    if context.mode.boxed:
        mounts, cwd = context.workspace.mounts, context.workspace.outside(cwd)
        words = boxed(words, mounts, cwd)

    async def act() -> Result:
        context.workspace.check_folder(folder)
        if arguments.background:
            await context.commands.make_room()
        command = await context.commands.start(words, cwd, here=context.mode.boxed)
        if arguments.background:
            id = context.commands.keep(command)
            return Result(f"It runs in the background as {id}.", _shown(command, None), output={"id": id})
        return await _follow(context, command, arguments.timeout)

    title = arguments.command if len(arguments.command) <= 200 else arguments.command[:200] + "…"
    return Intent(f"`{title}`", act, [{"path": cwd}], scope=scope_of(arguments.command))


def scope_of(command: str) -> Scope:
    """ "Always" covers all commands that begin alike, or only this exact command line.

    Only the exact line if it has operators, quotes or expansions, or begins with a variable, an option or a wrapper.
    """
    words = command.split()
    if not words or not _PLAIN_COMMAND.fullmatch(command):
        return Scope(f"run={command}", "exactly this command")
    program = words[0].rpartition("/")[2]
    begin = words[:2] if program in _WITH_SUBCOMMANDS and len(words) > 1 else words[:1]
    if program in _WRAPPERS or "=" in begin[0] or begin[-1].startswith("-"):
        return Scope(f"run={command}", "exactly this command")
    return Scope(f"run:{' '.join(begin)}", f"commands that begin with `{' '.join(begin)}`")


async def _follow(context: ToolContext, command: RunningCommand, seconds: float) -> Result:
    """Wait for the end and show the output meanwhile; in any case the command is ended and released."""
    try:
        if command.terminal_id is not None:
            context.show(_shown(command, None))  # the client shows the terminal live by itself
        timed_out = await _wait(context, command, seconds)
        if timed_out:
            await command.kill()
        output = await command.output()
        return _result(command, output, seconds if timed_out else None)
    finally:
        await asyncio.shield(command.release())


async def _wait(context: ToolContext, command: RunningCommand, seconds: float) -> bool:
    """Wait for the end of the command; returns whether the time ran out."""
    ended = asyncio.ensure_future(command.wait())
    deadline = asyncio.get_running_loop().time() + seconds
    shown = ""
    try:
        while True:
            left = deadline - asyncio.get_running_loop().time()
            pause = left if command.terminal_id is not None else min(left, STREAM_INTERVAL)
            done, _ = await asyncio.wait([ended], timeout=max(pause, 0))
            if done:
                await ended
                return False
            if left <= 0:
                return True
            if command.terminal_id is None and (text := (await command.output()).text) != shown:
                shown = text
                context.show([text_content(_fenced(text))])
    finally:
        ended.cancel()


def _result(command: RunningCommand, output: Output, timeout: float | None) -> Result:
    notes = []
    if output.truncated:
        notes.append("[the beginning of the output is left out]")
    body = output.text if output.text.strip() else "[no output]"
    ending = output.describe()
    if timeout is not None:
        ending = f"ended after the time limit of {timeout:g} s; for servers use background"
    failed = timeout is not None or output.exit_code != 0
    text = "\n".join([*notes, body.rstrip("\n"), f"[{ending}]"])
    raw = {"exitCode": output.exit_code, "signal": output.signal, "timedOut": timeout is not None}
    return Result(text, _shown(command, text), raw, failed=failed)


def _shown(command: RunningCommand, text: str | None) -> list[Json]:
    if command.terminal_id is not None:
        return [{"type": "terminal", "terminalId": command.terminal_id}]
    return [text_content(_fenced(text))] if text is not None else []


def _fenced(text: str) -> str:
    fence = fence_for(text)
    return f"{fence}\n{text.rstrip()}\n{fence}"


run = Tool(
    "run",
    "execute",
    "execute",
    "Run a shell command in the workspace and return its output (stdout and stderr together) and exit code.",
    Arguments,
    prepare,
)


class CommandArguments(msgspec.Struct, forbid_unknown_fields=True):
    id: Annotated[str, Meta(description="What run answered.")]


async def prepare_check(context: ToolContext, arguments: CommandArguments) -> Intent:
    command = context.commands.find(arguments.id)

    async def act() -> Result:
        output = await command.output()
        return Result(f"{output.text.rstrip()}\n[{output.describe()}]".lstrip())

    return Intent(f"Look at command {arguments.id}", act)


async def prepare_stop(context: ToolContext, arguments: CommandArguments) -> Intent:
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
    CommandArguments,
    prepare_check,
)
stop_command = Tool(
    "stop_command",
    "execute",
    "note",
    "End a command that runs in the background.",
    CommandArguments,
    prepare_stop,
)
