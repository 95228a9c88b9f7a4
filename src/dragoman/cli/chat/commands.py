"""What a line that begins with `/` or `!` does."""

from __future__ import annotations

import subprocess
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Protocol

from dragoman.cli.chat.markdown import one_line
from dragoman.cli.chat.menu import Choice, Menu
from dragoman.cli.chat.opening import Wanted
from dragoman.cli.chat.screen import ChatScreen
from dragoman.cli.chat.settings import choices_of, find_option
from dragoman.client.errors import DragomanError
from dragoman.client.session import Session
from dragoman.wire.json_types import JsonObject, as_object, objects

COMMANDS = {
    "help": "what can be typed",
    "model": "choose the model",
    "mode": "choose the mode",
    "new": "begin another session; /new AGENT with another agent",
    "sessions": "go to another session of this folder",
    "fork": "continue in a copy of this session",
    "cancel": "end the running turn",
    "session": "show the session's id",
    "quit": "leave; the session can be continued",
}
HELP = """

Enter sends, Alt-Enter or Ctrl-J begins a new line, Ctrl-G opens $EDITOR
Ctrl-R searches what you typed here before, Up goes through it
@name links a file, !command runs a command in the session's folder
While the agent works, what you send waits; Up takes the last one back
Ctrl-C cancels the turn, twice leaves; Ctrl-D leaves"""
NAME_COLUMNS = 16
"""Columns for names in the list of commands; a longer name takes more."""


def with_agent_commands(update: JsonObject) -> dict[str, str]:
    """All commands with their help: ours, then those of an `available_commands_update`."""
    found = dict(COMMANDS)
    for command in objects(update.get("availableCommands")):
        description = str(command.get("description") or "of the agent")
        hint = as_object(command.get("input")).get("hint")
        help = f"{description} · {hint}" if hint else description
        found.setdefault(one_line(str(command.get("name"))), one_line(help))
    return found


class Chat(Protocol):
    """What commands use of a conversation."""

    @property
    def session(self) -> Session | None: ...

    def say(self, text: str, style: str = ...) -> None: ...

    def interrupt(self) -> None: ...

    def commands(self) -> dict[str, str]: ...

    @property
    def agent(self) -> str: ...

    def switch(self, wanted: Wanted) -> None: ...

    def spawn(self, work: Coroutine[Any, Any, None]) -> object: ...


class Commands:
    def __init__(self, chat: Chat, screen: ChatScreen) -> None:
        self._chat = chat
        self._screen = screen

    def run(self, text: str) -> bool:
        """Run a command of ours; returns False for any other, which the agent gets."""
        name, _, rest = text[1:].partition(" ")
        if name not in COMMANDS:
            return False
        session = self._chat.session
        if name == "help":
            listed = self._chat.commands()
            columns = min(NAME_COLUMNS, max(map(len, listed)))
            self._chat.say("\n".join(f"/{name:<{columns}}  {help}" for name, help in listed.items()) + HELP)
        elif name == "quit":
            self._screen.leave()
        elif name == "cancel":
            self._chat.interrupt()
        elif session is None:
            self._chat.say("the session is not there yet")
        elif name == "session":
            self._chat.say(session.id)
        elif name in ("new", "sessions", "fork"):
            folder = Path(session.cwd)
            self._chat.switch(
                {
                    "new": Wanted(folder, rest.strip() or self._chat.agent or None),
                    "sessions": Wanted(folder, pick=True),
                    "fork": Wanted(folder, fork=session),
                }[name]
            )
        else:
            self._choose_option(session, name, rest.strip())
        return True

    def _choose_option(self, session: Session, name: str, wanted: str) -> None:
        option = find_option(session.options, name)
        if option is None:
            self._chat.say(f"this agent offers no {name}")
            return
        values, id = choices_of(option), str(option.get("id"))
        if wanted:
            found = next((value for value, label in values if wanted in (value, label)), None)
            if found is None:
                self._chat.say(f"there is no {name} {wanted}: /{name} lists them", "ansired")
            else:
                self._chat.spawn(self._set(session, id, found, name))
            return
        current = str(option.get("currentValue"))
        labels = [Choice(f"{label}{'  (now)' if value == current else ''}") for value, label in values]

        def chosen(index: int) -> None:
            self._screen.close_menu(menu)
            self._chat.spawn(self._set(session, id, values[index][0], name))

        menu = Menu([[("bold", f"Which {name}?  Escape leaves it")]], labels, chosen, lambda: None, grace=0)
        self._screen.ask(menu)

    async def _set(self, session: Session, id: str, value: str, name: str) -> None:
        try:
            await session.set_option(id, value)
            self._chat.say(f"{name}: {value}")
        except DragomanError as error:
            self._chat.say(f"! {error}", "ansired")

    async def shell(self, command: str, folder: str) -> None:
        """Run a command of the user on the terminal itself."""
        self._chat.say(f"$ {command}", "bold")
        await self._screen.in_terminal(lambda: subprocess.run(command, shell=True, cwd=folder, check=False))
