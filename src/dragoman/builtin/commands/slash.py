"""Slash commands: they need no model, but use the same tools, permission questions and diffs as a model."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman.builtin.commands.custom import CustomCommand, find_commands
from dragoman.builtin.commands.table import OFFERED, available, own_commands
from dragoman.builtin.models.choice import NONE
from dragoman.builtin.models.preload import load
from dragoman.builtin.modes import MODES
from dragoman.builtin.tools.changes import AS_BEFORE
from dragoman.config.root import find_root

if TYPE_CHECKING:
    from dragoman.builtin.session import Session

Json = dict[str, Any]

_COMMAND = re.compile(r"/([a-z][\w:-]*)(?:\s+(.*))?\s*", re.DOTALL)
_RANGE = re.compile(r"(.+?):(\d+)(?:-(\d+))?")
GIT_CHANGES = "git status --short && git --no-pager diff"
"""Untracked files appear in the status only. Only named: git may run programs of the repository's settings."""
QUOTED = frozenset({"read", "grep", "run"})
"""Tools whose result is text of files and programs; it is shown as a code block."""
_STATUS_MARKS = {"pending": " ", "in_progress": "~", "completed": "x"}


class Usage(Exception):
    """The arguments of the command are wrong; the message says how it is used."""


@dataclass(frozen=True, slots=True)
class Command:
    """One row of the table of commands."""

    name: str
    hint: str
    description: str
    run: Callable[[Session, str], Awaitable[None]]


def parse(text: str) -> tuple[str, str] | None:
    """The command's name and the rest of the text; None for other text, also for a path such as `/etc/hosts`."""
    found = _COMMAND.fullmatch(text.strip())
    return (found[1], (found[2] or "").strip()) if found else None


def find(session: Session, name: str) -> Command | CustomCommand | None:
    return COMMANDS.get(name) or find_commands(session.cwd).get(name)


def available_commands(session: Session) -> list[Json]:
    """The commands that `available_commands_update` lists."""
    custom = find_commands(session.cwd).values()
    return own_commands() + [
        available(command.name, command.description, "") for command in custom if command.name not in COMMANDS
    ]


# -- the commands


async def _help(session: Session, rest: str) -> None:
    lines = [
        "I am Dragoman's built-in agent. These commands work without a language model:",
        "",
        *(
            f"- `/{command.name}{' ' + command.hint if command.hint else ''}`: {command.description}"
            for command in COMMANDS.values()
        ),
    ]
    custom = [command for command in find_commands(session.cwd).values() if command.name not in COMMANDS]
    if custom:
        lines += ["", "From this workspace, for a model:", ""]
        lines += [f"- `/{command.name}`: {command.description}" for command in custom]
    lines += ["", f"Model: {session.model or 'none configured; /model says how'}. Mode: {session.mode}."]
    session.say("\n".join(lines))


_READ_ON = re.compile(r"\[lines ([0-9]+) to ([0-9]+)([^;\]]*); read on with line=[0-9]+\]\Z")


def _for_person(text: str, arguments: Json) -> str:
    """The text of `read` for a person, who reads on with the command: `line` is an argument of the tool."""

    def read_on(found: re.Match[str]) -> str:
        first, last = int(found[1]), int(found[2])
        following = f"/read {arguments['path']}:{last + 1}-{2 * last - first + 1}"
        return f"[lines {first} to {last}{found[3]}; read on with {following}]"

    return _READ_ON.sub(read_on, text)


async def _read(session: Session, rest: str) -> None:
    words = _words(rest)
    if len(words) != 1:
        raise Usage("/read PATH, or /read PATH:LINE, or /read PATH:FIRST-LAST")
    arguments: Json = {"path": words[0]}
    found = _RANGE.fullmatch(words[0])
    if found:
        first = int(found[2])
        last = int(found[3]) if found[3] else first
        arguments = {"path": found[1], "line": max(first, 1), "limit": max(last - first + 1, 1)}
    await _use(session, "read", arguments, f"/read {rest}")


async def _search(session: Session, rest: str) -> None:
    words = _words(rest)
    if not 1 <= len(words) <= 2:
        raise Usage('/search PATTERN [FOLDER]; quote a pattern with blanks: /search "two words"')
    arguments = {"pattern": words[0]} | ({"path": words[1]} if words[1:] else {})
    await _use(session, "grep", arguments, f"/search {rest}")


async def _run(session: Session, rest: str) -> None:
    if not rest:
        raise Usage("/run COMMAND")
    await _use(session, "run", {"command": rest}, f"/run {rest}")


async def _edit(session: Session, rest: str) -> None:
    words = _words(rest)
    if len(words) != 3:
        raise Usage('/edit PATH "OLD TEXT" "NEW TEXT"; the old text must be there exactly once')
    edits = [{"old": words[1], "new": words[2]}]
    await _use(session, "edit", {"path": words[0], "edits": edits}, f"/edit {words[0]}")


async def _write(session: Session, rest: str) -> None:
    words = rest.split(None, 1)
    if len(words) != 2:
        raise Usage("/write PATH TEXT")
    workspace = await session.files()
    path = workspace.path(words[0])
    if await workspace.exists(path):
        await workspace.whole(path)  # counts as read: the user knows the file
    await _use(session, "write", {"path": words[0], "content": words[1] + "\n"}, f"/write {words[0]}")


async def _diff(session: Session, rest: str) -> None:
    """Show the changes of this session as diffs."""
    if (await session.files()).originals:
        await _use(session, "changes", {}, "/diff")
        return
    nothing = "This session has changed no file."
    in_git = os.path.lexists(find_root(Path(session.cwd)) / ".git")
    if in_git and MODES[session.mode].verdicts["execute"] != "deny":
        nothing += f" For all changes that git sees: `/run {GIT_CHANGES}`."
    session.say(nothing)


async def _apply(session: Session, rest: str) -> None:
    await _use(session, "apply", {}, "/apply")


async def _plan(session: Session, rest: str) -> None:
    """Show the plan, replace it with steps divided by `;`, or tick one off with `done N`."""
    entries = session.plan
    done = re.fullmatch(r"done (\d+)", rest)
    if done:
        number = int(done[1])
        if not 1 <= number <= len(entries):
            raise Usage(f"there is no step {number}; the plan has {len(entries)}")
        entries = [dict(entry) for entry in entries]
        entries[number - 1]["status"] = "completed"
    elif rest:
        steps = [step.strip() for step in re.split(r"[;\n]", rest) if step.strip()]
        entries = [{"content": step, "status": "pending", "priority": "medium"} for step in steps]
    elif not entries:
        session.say("There is no plan yet. Make one: `/plan first step; second step`.")
        return
    if rest:
        session.set_plan(entries)  # clients show it beside the conversation
        ticked = sum(entry["status"] == "completed" for entry in entries)
        session.say(f"{ticked} of {len(entries)} steps of the plan are done.")
        return
    lines = [
        f"{number}. [{_STATUS_MARKS[entry['status']]}] {entry['content']}"
        for number, entry in enumerate(entries, start=1)
    ]
    session.say("\n".join(lines))


async def _model(session: Session, rest: str) -> None:
    if rest:
        session.set_model(rest)
        session.say(f"The model is now {session.model or 'none: commands only'}.")
        return
    offers = session.models.offers(session.model)
    names = [f"- `{value}`{' (in use)' if value == (session.model or NONE) else ''}" for value, _ in offers]
    text = f"Model: {session.model or 'none'}.\n\n" + "\n".join(names)
    if session.model is None:
        text += "\n\nTo get a language model:\n\n" + session.models.guidance()
    session.say(text)


async def _mode(session: Session, rest: str) -> None:
    if not rest:
        rows = [
            f"- `{mode.id}`{' (in use)' if mode.id == session.mode else ''}: {mode.description}"
            for mode in MODES.values()
        ]
        session.say("\n".join(rows))
        return
    if rest not in MODES:
        raise Usage(f"/mode {'|'.join(MODES)}")
    session.set_mode(rest)
    session.say(f"The mode is now {MODES[rest].name}: {MODES[rest].description}.")


async def _compact(session: Session, rest: str) -> None:
    if session.model is None:
        session.say("There is nothing to compact: no language model is configured.")
        return
    await asyncio.to_thread(load, "dragoman.builtin.loop")
    from dragoman.builtin.loop import compact_now

    await compact_now(session)


async def _mcp(session: Session, rest: str) -> None:
    if session.mcp is None:
        session.say("This session has no MCP servers.")
        return
    await session.mcp.ready(session)
    session.say(session.mcp.describe())


_RUN: dict[str, Callable[[Session, str], Awaitable[None]]] = {
    "help": _help,
    "read": _read,
    "search": _search,
    "run": _run,
    "edit": _edit,
    "write": _write,
    "diff": _diff,
    "apply": _apply,
    "plan": _plan,
    "model": _model,
    "mode": _mode,
    "mcp": _mcp,
    "compact": _compact,
}

COMMANDS: dict[str, Command] = {
    row.name: Command(row.name, row.hint, row.description, _RUN[row.name]) for row in OFFERED
}


async def _use(session: Session, tool: str, arguments: Json, line: str) -> None:
    """Run a tool for the user, and note the result for the model's next prompt."""
    outcome = await session.toolbox.call(tool, arguments, as_message=True)
    session.unsent_results.append(f"{line}\n{outcome.text}")
    if outcome.to_person is not None:  # the call failed
        session.say(outcome.to_person)
    elif tool == "changes" and outcome.text != AS_BEFORE:
        session.say_block(outcome.text, "diff")
    elif tool in QUOTED:
        session.say_block(_for_person(outcome.text, arguments) if tool == "read" else outcome.text)
    else:
        session.say(outcome.text)


def _words(text: str) -> list[str]:
    lexer = shlex.shlex(text, posix=True, punctuation_chars=False)
    lexer.whitespace_split = True
    lexer.commenters = lexer.escape = ""  # a backslash belongs to the pattern
    try:
        return list(lexer)
    except ValueError as error:
        raise Usage(f"the quotes do not match: {error}") from error
