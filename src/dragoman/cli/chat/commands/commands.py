"""What a line that begins with `/` or `!` does."""

from __future__ import annotations

import subprocess
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any

from dragoman.cli.chat.commands import sharing
from dragoman.cli.chat.commands.agents import Agents
from dragoman.cli.chat.commands.chat import Chat
from dragoman.cli.chat.commands.history import History
from dragoman.cli.chat.commands.options import BUILTIN, choices_of, find_option
from dragoman.cli.chat.lines.markdown import one_line
from dragoman.cli.chat.menu import Choice, Menu, Offer
from dragoman.cli.chat.opening import Wanted
from dragoman.cli.chat.screen import ChatScreen
from dragoman.client.errors import DragomanError
from dragoman.client.session import Session
from dragoman.wire.json_types import JsonObject, as_object, objects

COMMANDS = {
    "help": "what can be typed",
    "model": "choose the model; /model NAME takes it",
    "mode": "choose the mode",
    "agents": "list the agents",
    "switch": "continue this conversation with another agent; /switch AGENT",
    "new": "begin another session; /new AGENT with another agent",
    "sessions": "go to another session of this folder",
    "fork": "continue in a copy of this session",
    "rewind": "go back to before a message: the conversation, the files, or both",
    "undo": "bring back what the last rewind or revert undid",
    "changes": "show what this session changed; /changes TURN one turn of it",
    "export": "write the conversation as Markdown; /export FILE",
    "copy": "copy the agent's last message",
    "detach": "leave, and let the turn go on in dragoman serve",
    "cancel": "end the running turn",
    "session": "show the session's id",
    "quit": "leave; the session can be continued",
}
HELP = """

Enter sends, Alt-Enter or Ctrl-J begins a new line, Ctrl-G opens $EDITOR
Ctrl-R searches what you typed here before, Up goes through it
@name links a file, the path of an image sends it
!command runs a command in the session's folder
While the agent works, what you send waits: Up takes the last one back,
Ctrl-S hands it to the running turn, if the agent can take it
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


class Commands:
    def __init__(self, chat: Chat, screen: ChatScreen) -> None:
        self._chat = chat
        self._screen = screen
        self._history = History(chat, screen)
        self._agents = Agents(chat, screen)

    def run(self, text: str) -> bool:
        """Run a command of ours; returns False for any other, which the agent gets."""
        name, _, rest = text[1:].partition(" ")
        if name not in COMMANDS:
            return False
        given, session = rest.strip(), self._chat.session
        if name == "help":
            self._help()
        elif name == "quit":
            self._screen.leave()
        elif name == "cancel":
            self._chat.interrupt()
        elif name == "copy":
            sharing.copy(self._chat, self._screen)
        elif session is None:
            self._chat.say("the session is not there yet")
        elif name == "session":
            self._chat.say(session.id)
        elif name in ("model", "mode"):
            self._choose_option(session, name, given)
        else:
            self._with_session(session, name, given)
        return True

    def _help(self) -> None:
        listed = self._chat.commands()
        columns = min(NAME_COLUMNS, max(map(len, listed)))
        self._chat.say("\n".join(f"/{name:<{columns}}  {help}" for name, help in listed.items()) + HELP)

    def _with_session(self, session: Session, name: str, given: str) -> None:
        folder = Path(session.cwd)
        match name:
            case "new":
                self._chat.switch(Wanted(folder, given or self._chat.agent or None))
            case "sessions":
                self._chat.switch(Wanted(folder, pick=True))
            case "fork":
                self._chat.switch(Wanted(folder, fork=session))
            case "agents":
                self._run(self._agents.list(session))
            case "switch":
                self._run(self._agents.switch(session, given))
            case "detach":
                self._detach()
            case "rewind":
                self._run(self._history.rewind(session, given))
            case "undo":
                self._run(self._history.undo(session))
            case "changes":
                self._run(self._history.changes(session, given))
            case "export":
                self._run(sharing.export(self._chat, session, given))

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        async def told() -> None:
            try:
                await work
            except DragomanError as error:
                self._chat.say(f"! {error}", "ansired")

        self._chat.spawn(told())

    def arguments(self, name: str) -> Sequence[tuple[str, str]]:
        """What may follow a command, with a hint each."""
        session = self._chat.session
        if name in ("new", "switch"):
            return [
                (agent, "this one" if agent == self._chat.agent else "") for agent in self._agents.names()
            ]
        option = find_option(session.options, name) if session is not None and name in COMMANDS else None
        return choices_of(option) if option is not None else ()

    def _detach(self) -> None:
        if self._chat.lives_on or not self._chat.busy:
            self._screen.leave()
        else:
            self._chat.say(
                "this chat has a gateway of its own, which ends with it, and so would the turn: begin chats while\n"
                "`dragoman serve` runs to leave and come back; /quit leaves now",
                "ansiyellow",
            )

    # -- options

    def _choose_option(self, session: Session, name: str, wanted: str) -> None:
        option = find_option(session.options, name)
        if option is None:
            self._chat.say(f"this agent offers no {name}")
            return
        values, id = choices_of(option), str(option.get("id"))
        if wanted:
            found = next((value for value, label in values if wanted in (value, label)), None)
            if found is None and self._chat.agent == BUILTIN and name == "model":
                found = wanted  # any PROVIDER:NAME
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

        title = f"Which {name}?  Escape leaves it"
        if self._chat.agent == BUILTIN and name == "model":
            title += "; /model PROVIDER:NAME takes any other"
        menu = Menu.of(Offer([[("bold", title)]], labels), chosen, lambda: None)
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
