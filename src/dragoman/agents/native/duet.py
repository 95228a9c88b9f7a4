"""Two agents in one session: `/codex` in a conversation with Claude Code asks Codex, and the other way round.

    gateway ──► Duet ──► host    the session's own agent
                  └────► guest   started at its first prompt, in the same folder with the same MCP servers

Each agent gets the turns that it missed with its next prompt. Modes, models and commands are the host's.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from typing import Any

from dragoman.agents.adapter import AgentAdapter, Upstream, text_of
from dragoman.agents.native import usage
from dragoman.agents.native.duet_state import DuetState, DuetStates
from dragoman.agents.process import AgentProcess
from dragoman.gateway.ports.agent import AgentEnd
from dragoman.wire.errors import RpcError
from dragoman.wire.json_types import JsonObject, as_object, objects

log = logging.getLogger(__name__)

TITLES = {"claude": "Claude Code", "codex": "Codex"}
SHOWN = frozenset({"agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "plan"})
"""Updates of the guest that are shown; the others are about its own session, which clients do not see."""
COMING_BACK = frozenset({"session/load", "session/resume"})
MISSED = 20_000
"""Most characters of missed turns that an agent gets."""
Make = Callable[[Upstream], AgentAdapter]


@dataclass(slots=True)
class Shared:
    """A session with a host and a guest."""

    setup: JsonObject
    speaker: str
    guest_id: str | None = None
    former_id: str | None = None
    """The guest's session before this session was unloaded."""
    missed: dict[str, str] = field(default_factory=dict)
    """By agent: the conversation since its last prompt."""
    said: str = ""
    """The text of the present answer."""
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    """Set on cancel, also for a guest that is still starting and cannot be cancelled itself."""


class Duet:
    """Implements `AgentAdapter`."""

    def __init__(
        self, upstream: Upstream, host: str, make_host: Make, guest: str, make_guest: Make, kept: DuetStates
    ) -> None:
        self._upstream = upstream
        self._kept = kept
        self._names = {"host": host, "guest": guest}
        self._make_guest = make_guest
        self._host = make_host(_HostUpstream(self, upstream))
        self._guest: AgentAdapter | None = None
        self._guest_lock = asyncio.Lock()
        self._starts: set[asyncio.Future[AgentAdapter]] = set()
        """Starts of the guest in progress; after a cancel no request waits for them."""
        self.sessions: dict[str, Shared] = {}
        self.requests: dict[str, Callable[[JsonObject], Awaitable[JsonObject]]] = {
            **self._host.requests,
            "session/new": lambda params: self._opened("session/new", params),
            "session/load": lambda params: self._opened("session/load", params),
            "session/resume": lambda params: self._opened("session/resume", params),
            "session/fork": lambda params: self._opened("session/fork", params),
            "session/close": lambda params: self._closed("session/close", params),
            "session/delete": lambda params: self._closed("session/delete", params),
            "session/prompt": self._prompt,
        }

    def cancel(self, params: JsonObject) -> None:
        self._host.cancel(params)
        shared = self.sessions.get(str(params.get("sessionId")))
        if shared is None:
            return
        shared.cancelled.set()
        if self._guest is not None and shared.guest_id is not None:
            self._guest.cancel({"sessionId": shared.guest_id})

    def programs(self) -> Iterable[AgentProcess]:
        guests = self._guest.programs() if self._guest is not None else ()
        return [*self._host.programs(), *guests]

    async def close(self) -> None:
        for start in self._starts:
            start.cancel()
        if self._starts:
            await asyncio.wait(self._starts)
        if self._guest is not None:
            await self._guest.close()
        await self._host.close()

    # -- for `_HostUpstream` and `_GuestUpstream`

    def host_session(self, guest_id: str) -> str | None:
        return next((id for id, each in self.sessions.items() if each.guest_id == guest_id), None)

    def heard(self, session_id: str, update: JsonObject) -> None:
        shared = self.sessions.get(session_id)
        if shared is not None and update.get("sessionUpdate") == "agent_message_chunk":
            shared.said = (shared.said + str(as_object(update.get("content")).get("text", "")))[-MISSED:]

    def with_guest(self, update: JsonObject) -> JsonObject:
        """The host's commands, and the command that prompts the guest."""
        guest = self._names["guest"]
        command = {
            "name": guest,
            "description": f"Ask {TITLES[guest]} in this session; alone: until further notice",
        }
        listed = objects(update.get("availableCommands"))
        return {**update, "availableCommands": [*listed, {**command, "input": {"hint": "message"}}]}

    def guest_lost(self) -> None:
        """Drop a guest whose process ended; its next prompt restarts it."""
        self._guest = None
        for shared in self.sessions.values():
            shared.guest_id = None

    # -- requests

    async def _opened(self, method: str, params: JsonObject) -> JsonObject:
        answer = await self._host.requests[method](params)
        session_id = str(answer.get("sessionId") or params.get("sessionId"))
        setup: JsonObject = {
            name: params[name] for name in ("cwd", "mcpServers", "additionalDirectories") if name in params
        }
        shared = self.sessions[session_id] = Shared(setup, self._names["host"])
        known = self._kept.read(session_id) if method in COMING_BACK else None
        if known is not None and known.speaker in self._names.values():
            shared.speaker, shared.former_id, shared.missed = known.speaker, known.guest_id, known.missed
        return answer

    async def _closed(self, method: str, params: JsonObject) -> JsonObject:
        shared = self.sessions.pop(text_of(params, "sessionId"), None)
        if shared is not None and shared.guest_id is not None and self._guest is not None:
            await self._guest.requests["session/close"]({"sessionId": shared.guest_id})
        if method == "session/delete":
            self._kept.forget(text_of(params, "sessionId"))
        return await self._host.requests[method](params)

    async def _prompt(self, params: JsonObject) -> JsonObject:
        session_id = text_of(params, "sessionId")
        shared = self.sessions.get(session_id)
        if shared is None:
            return await self._host.requests["session/prompt"](params)
        asked, blocks = route(params.get("prompt"), tuple(self._names.values()))
        if asked is not None and not blocks:
            shared.speaker = asked
            self._keep(session_id, shared)
            self._tell(session_id, f"{TITLES[asked]} answers from now on.")
            return {"stopReason": "end_turn"}
        speaker = asked or shared.speaker
        words = "".join(str(block.get("text", "")) for block in blocks)
        shared.said = ""
        shared.cancelled.clear()
        try:
            return await self._ask(session_id, shared, speaker, blocks)
        finally:
            other = next(name for name in self._names.values() if name != speaker)
            told = f"User: {words}\n\n{TITLES[speaker]}: {shared.said}\n\n"
            shared.missed[other] = (shared.missed.get(other, "") + told)[-MISSED:]
            self._keep(session_id, shared)

    async def _ask(
        self, session_id: str, shared: Shared, speaker: str, blocks: list[JsonObject]
    ) -> JsonObject:
        agent = self._host
        if speaker != self._names["host"]:
            start = asyncio.ensure_future(self._start_guest(shared))
            self._starts.add(start)
            start.add_done_callback(self._started)
            guest = await _started_unless_cancelled(shared.cancelled, start)
            if guest is None:
                return {"stopReason": "cancelled"}
            agent, session_id = guest, str(shared.guest_id)
        told = [*_missed(shared, speaker), *blocks]
        prompting = agent.requests["session/prompt"]({"sessionId": session_id, "prompt": told})
        if agent is self._host:
            return await prompting
        try:
            return usage.of_agent(await prompting, speaker)
        except RpcError as error:
            error.data = usage.of_agent(error.data, speaker) if isinstance(error.data, dict) else error.data
            raise

    async def _start_guest(self, shared: Shared) -> AgentAdapter:
        """Start the guest if needed, and give it a session that belongs to this one."""
        async with self._guest_lock:
            guest = self._guest
            if guest is None:
                guest = self._make_guest(_GuestUpstream(self, self._upstream))
                try:
                    await guest.requests["initialize"]({})
                except BaseException:
                    await guest.close()
                    raise
                self._guest = guest
            if shared.guest_id is None and shared.former_id is not None:
                shared.guest_id = await _resume_guest(guest, shared.former_id, shared.setup)
            if shared.guest_id is None:
                created = await guest.requests["session/new"](shared.setup)
                shared.guest_id = str(created["sessionId"])
            return guest

    def _keep(self, session_id: str, shared: Shared) -> None:
        """Save the state if it involves the guest; the host stores its own session."""
        guest_id = shared.guest_id or shared.former_id
        if guest_id is not None or shared.speaker != self._names["host"]:
            self._kept.write(session_id, DuetState(shared.speaker, guest_id, shared.missed))

    def _started(self, start: asyncio.Future[AgentAdapter]) -> None:
        self._starts.discard(start)
        if not start.cancelled() and start.exception() is not None:
            log.info("the other agent did not start: %s", start.exception())

    def _tell(self, session_id: str, text: str) -> None:
        content = {"type": "text", "text": text}
        self._upstream.update(session_id, {"sessionUpdate": "agent_message_chunk", "content": content})


class _HostUpstream:
    """Implements `Upstream` for the host: passes everything on, and adds the guest's command."""

    def __init__(self, duet: Duet, upstream: Upstream) -> None:
        self._duet = duet
        self.name = upstream.name
        self.ask, self.spawn, self.lost, self._update = (
            upstream.ask,
            upstream.spawn,
            upstream.lost,
            upstream.update,
        )

    def update(self, session_id: str, update: JsonObject) -> None:
        if update.get("sessionUpdate") == "available_commands_update":
            update = self._duet.with_guest(update)
        self._duet.heard(session_id, update)
        self._update(session_id, update)


class _GuestUpstream:
    """Implements `Upstream` for the guest: sends its updates and requests in the host's session."""

    def __init__(self, duet: Duet, upstream: Upstream) -> None:
        self._duet = duet
        self._upstream = upstream
        self.name = upstream.name

    def update(self, session_id: str, update: JsonObject) -> None:
        host = self._duet.host_session(session_id)
        if host is not None and update.get("sessionUpdate") in SHOWN:
            self._duet.heard(host, update)
            self._upstream.update(host, update)

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        host = self._duet.host_session(str(params.get("sessionId")))
        return await self._upstream.ask(method, {**params, "sessionId": host})

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        return self._upstream.spawn(work)

    def lost(self, end: AgentEnd) -> None:
        self._duet.guest_lost()


async def _started_unless_cancelled(
    cancelled: asyncio.Event, start: asyncio.Future[AgentAdapter]
) -> AgentAdapter | None:
    """Wait until the guest is started; None if the turn is cancelled first. The start goes on for the next prompt."""
    waiting = asyncio.ensure_future(cancelled.wait())
    try:
        await asyncio.wait((start, waiting), return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
    return None if cancelled.is_set() else await start


def route(blocks: object, names: tuple[str, ...]) -> tuple[str | None, list[JsonObject]]:
    """The agent that the prompt names (`/name`), if any, and the prompt without it; empty for the name alone."""
    found = objects(blocks)
    text = str(found[0].get("text", "")).lstrip() if found and found[0].get("type", "text") == "text" else ""
    for name in names:
        word, *rest_of = text.split(maxsplit=1)[:2] or [""]
        rest = rest_of[0] if rest_of else ""
        if word == f"/{name}":
            first = [{**found[0], "text": rest.strip()}] if rest.strip() else []
            return name, [*first, *found[1:]]
    return None, found


async def _resume_guest(guest: AgentAdapter, former_id: str, setup: JsonObject) -> str | None:
    """Resume the guest's former session; None if the guest does not have it any more."""
    try:
        await guest.requests["session/resume"]({**setup, "sessionId": former_id})
    except RpcError as error:
        log.info("the other agent starts a new session: %s", error.message)
        return None
    return former_id


def _missed(shared: Shared, speaker: str) -> list[JsonObject]:
    told = shared.missed.pop(speaker, "")
    if not told:
        return []
    text = f"This was said in the conversation since you were last asked:\n<transcript>\n{told}</transcript>"
    return [{"type": "text", "text": text}]
