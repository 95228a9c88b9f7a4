"""Opens the session that a chat asks for: a new one, the folder's last, one of the list, a copy."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from pathlib import Path

from dragoman.cli.chat.lines.markdown import Line, one_line
from dragoman.cli.chat.menu import Choice, Menu
from dragoman.cli.chat.screen import ChatScreen
from dragoman.client import Gateway, Session, SessionInfo
from dragoman.gateway.ids import PREFIX


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the command line or a command asked for; a new session, if it names none."""

    folder: Path
    agent: str | None = None
    last: bool = False
    pick: bool = False
    session: str | None = None
    after: int = 0
    """The last event of the session that was shown already."""
    fork: Session | None = None


@dataclass(frozen=True, slots=True)
class Opened:
    session: Session
    agent: str
    """Empty if it is not known yet."""
    replays: bool
    """Whether earlier events come first, up to a `CaughtUp`."""
    loaded: bool = False
    """Whether all earlier events are there already."""


async def open_session(
    gateway: Gateway,
    wanted: Wanted,
    screen: ChatScreen,
    tell: Callable[[str], None],
    known: Container[str] = (),
) -> Opened:
    """Raises `LookupError` if there is none such; `tell` gets what is being done.

    `known` are the sessions that were open on this connection before: a resume would leave out the prompts that were
    sent over it, so those are loaded.
    """
    if wanted.fork is not None:
        tell("copying the conversation" + (f" for {wanted.agent}" if wanted.agent else ""))
        made = await gateway.fork(wanted.fork, agent=wanted.agent)
        return Opened(made, wanted.agent or "", replays=False)
    if wanted.session is None and not wanted.last and not wanted.pick:
        tell(f"starting {wanted.agent or 'the agent'}")
        made = await gateway.new(wanted.agent, wanted.folder, watch=True)
        return Opened(made, wanted.agent or "", replays=False)
    info = await _find(gateway, wanted, screen, tell)
    tell(f"opening {info.id}")
    if info.id in known and not wanted.after:
        session = gateway.session(info.id, info.cwd)
        session.watch()
        await gateway.load(session)
        return Opened(session, info.agent, replays=True, loaded=True)
    session = await gateway.resume(info.id, info.cwd, after=wanted.after)
    return Opened(session, info.agent, replays=True)


async def _find(
    gateway: Gateway, wanted: Wanted, screen: ChatScreen, tell: Callable[[str], None]
) -> SessionInfo:
    if wanted.session is not None:
        starts = (wanted.session, f"{PREFIX}{wanted.session}")
        found = [info async for info in gateway.sessions() if info.id.startswith(starts)]
        if len(found) != 1:
            what = "no session begins" if not found else f"{len(found)} sessions begin"
            raise LookupError(f"{what} with {wanted.session}: `dragoman sessions list` has them")
        return found[0]
    here = [info async for info in gateway.sessions(wanted.folder)]
    if not here:
        raise LookupError(
            f"there is no session in {wanted.folder} yet: `dragoman chat` without -c or -r begins one"
        )
    if wanted.last:
        return here[0]
    tell("choosing a session")
    return await _pick(here, screen)


async def _pick(sessions: Sequence[SessionInfo], screen: ChatScreen) -> SessionInfo:
    picked: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    from dragoman.cli.sessions.state import ago

    labels = [
        Choice(f"{one_line(info.title) or '(no title)'}  {info.agent}, {ago(info.updated_at)}")
        for info in sessions
    ]

    def dismissed() -> None:
        picked.set_exception(LookupError("no session was chosen"))

    title: list[Line] = [[("bold", "Which session?  Escape leaves it")]]
    menu = Menu(title, labels, picked.set_result, dismissed, grace=0)
    screen.ask(menu)
    try:
        return sessions[await picked]
    finally:
        screen.close_menu(menu)
