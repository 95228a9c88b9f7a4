"""`/agents` and `/switch`: which agents there are, and another one for this conversation."""

from __future__ import annotations

import asyncio
from pathlib import Path

from dragoman.cli.chat.commands.chat import Chat
from dragoman.cli.chat.lines.markdown import one_line
from dragoman.cli.chat.menu import Choice, Menu, Offer
from dragoman.cli.chat.opening import Wanted
from dragoman.cli.chat.screen import ChatScreen
from dragoman.client.session import Session


class Agents:
    def __init__(self, chat: Chat, screen: ChatScreen) -> None:
        self._chat = chat
        self._screen = screen

    def names(self) -> list[str]:
        return sorted(self._chat.gateway.agents) if self._chat.gateway is not None else []

    async def list(self, session: Session) -> None:
        installed = await asyncio.to_thread(_installed, Path(session.cwd), self.names())
        missing = [name for name in self.names() if name not in installed]
        listed = [f"{'*' if name == self._chat.agent else ' '} {one_line(name)}" for name in installed]
        told = "* has this session; /new AGENT begins another, /switch AGENT continues this one"
        absent = [f"not installed: {', '.join(missing)}"] if missing else []
        self._chat.say("\n".join([*listed, told, *absent]))

    async def switch(self, session: Session, agent: str) -> None:
        """Continue the conversation in a copy of the session, with another agent."""
        folder = Path(session.cwd)
        if agent:
            if agent == self._chat.agent:
                self._chat.say(f"{agent} has this session already", "ansired")
            elif agent not in self.names():
                self._chat.say(f"{agent} is not known: /agents lists them", "ansired")
            else:
                self._chat.switch(Wanted(folder, agent, fork=session))
            return
        installed = await asyncio.to_thread(_installed, folder, self.names())
        others = [name for name in installed if name != self._chat.agent]
        if not others:
            self._chat.say("no other agent is installed: `dragoman agents list` says how to install one")
            return

        def chosen(index: int) -> None:
            self._screen.close_menu(menu)
            self._chat.switch(Wanted(folder, others[index], fork=session))

        title = "Which agent continues this conversation, in a copy of it?  Escape leaves it"
        menu = Menu.of(Offer([[("bold", title)]], [Choice(name) for name in others]), chosen, lambda: None)
        self._screen.ask(menu)


def _installed(folder: Path, names: list[str]) -> list[str]:
    """Those of the agents whose programs are there, as far as the configuration of this machine says."""
    from dragoman.agents.known import is_installed
    from dragoman.cli.chat.settings import settings_of

    config = settings_of(folder)
    if config is None:
        return names
    agents = config.agents
    return [name for name in names if name not in agents or is_installed(agents[name])]
