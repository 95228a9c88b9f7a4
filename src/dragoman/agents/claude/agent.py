"""Claude Code as an agent: what ACP asks, done with `claude` processes, one per session."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Iterable

from dragoman.agents.acp import AcpAgent
from dragoman.agents.adapter import AdapterHandle, text_of
from dragoman.agents.claude import prompt
from dragoman.agents.claude.history import History
from dragoman.agents.claude.result import LOGIN
from dragoman.agents.claude.session import Session
from dragoman.agents.json_types import JsonObject
from dragoman.agents.native import Native
from dragoman.agents.version import ask_version
from dragoman.gateway.ports.agent import AgentEnd
from dragoman.wire.errors import invalid_params, session_not_found

LEAST_VERSION = (2, 0, 0)
"""Older ones have no `can_use_tool` with suggestions."""
UPDATE = "npm install -g @anthropic-ai/claude-code"


class ClaudeAgent:
    """Implements `Tongue`."""

    def __init__(self, native: Native, handle: AdapterHandle) -> None:
        self._handle = handle
        self._spawn = native.spawn
        self._boxed = native.boxed
        """Its transcripts are inside, where we cannot read; its working folder is the box's."""
        self._bypass = any("dangerously-skip-permissions" in word for word in native.config.command)
        self._history = History(native.environ)
        self._sessions: dict[str, Session] = {}
        self.requests: dict[str, Callable[[JsonObject], Awaitable[JsonObject]]] = {
            "initialize": self._initialize,
            "authenticate": self._authenticate,
            "session/new": self._new,
            "session/load": self._load,
            "session/resume": self._resume,
            "session/fork": self._fork,
            "session/list": self._list,
            "session/close": self._close,
            "session/prompt": self._prompt,
            "session/set_mode": self._set_mode,
            "session/set_model": self._set_model,
            "session/set_config_option": self._set_config_option,
        }

    def cancel(self, params: JsonObject) -> None:
        session = self._sessions.get(str(params.get("sessionId")))
        if session is not None:
            session.cancel()

    def programs(self) -> Iterable[AcpAgent]:
        return [session.program for session in self._sessions.values() if session.program is not None]

    async def close(self) -> None:
        await asyncio.gather(*(session.stop() for session in self._sessions.values()))

    # -- requests

    async def _initialize(self, params: JsonObject) -> JsonObject:
        version = await ask_version(self._spawn, self._handle.name, LEAST_VERSION, UPDATE)
        sessions: JsonObject = {"resume": {}, "fork": {}, "close": {}, "additionalDirectories": {}}
        if not self._boxed:
            sessions["list"] = {}
        return {
            "protocolVersion": 1,
            "agentInfo": {"name": "claude", "title": "Claude Code", "version": version},
            "agentCapabilities": {
                "loadSession": not self._boxed,
                "promptCapabilities": {"image": True, "audio": False, "embeddedContext": True},
                "mcpCapabilities": {"http": True, "sse": True},
                "sessionCapabilities": sessions,
            },
            "authMethods": [LOGIN],
        }

    async def _authenticate(self, params: JsonObject) -> JsonObject:
        """The login happens in a terminal, or is an environment variable; the next prompt tells whether it helped."""
        return {}

    async def _new(self, params: JsonObject) -> JsonObject:
        session_id = str(uuid.uuid4())
        session = await self._start(session_id, params, "--session-id", session_id)
        return self._told(session, {"sessionId": session_id, **session.options.state()})

    async def _load(self, params: JsonObject) -> JsonObject:
        session_id = text_of(params, "sessionId")
        updates = await asyncio.to_thread(self._history.updates, session_id)
        if updates is None:
            raise session_not_found(session_id)
        session = await self._start(session_id, params, "--resume", session_id)
        for update in updates:
            self._handle.update(session_id, update)
        return self._told(session, session.options.state())

    async def _resume(self, params: JsonObject) -> JsonObject:
        session_id = text_of(params, "sessionId")
        session = await self._start(session_id, params, "--resume", session_id)
        return self._told(session, session.options.state())

    async def _fork(self, params: JsonObject) -> JsonObject:
        former, session_id = text_of(params, "sessionId"), str(uuid.uuid4())
        flags = ("--resume", former, "--fork-session", "--session-id", session_id)
        session = await self._start(session_id, params, *flags)
        return self._told(session, {"sessionId": session_id, **session.options.state()})

    async def _list(self, params: JsonObject) -> JsonObject:
        cwd = params.get("cwd")
        sessions = await asyncio.to_thread(self._history.sessions, cwd if isinstance(cwd, str) else None)
        return {"sessions": sessions}

    async def _close(self, params: JsonObject) -> JsonObject:
        session = self._sessions.pop(text_of(params, "sessionId"), None)
        if session is not None:
            await session.stop()
        return {}

    async def _prompt(self, params: JsonObject) -> JsonObject:
        return await self._session(params).prompt(params.get("prompt"))

    async def _set_mode(self, params: JsonObject) -> JsonObject:
        session = self._session(params)
        await session.choose("mode", text_of(params, "modeId"))
        session.tell_options()
        return {}

    async def _set_model(self, params: JsonObject) -> JsonObject:
        session = self._session(params)
        session.tells_models = True
        await session.choose("model", text_of(params, "modelId"))
        session.tell_options(model=True)
        return {}

    async def _set_config_option(self, params: JsonObject) -> JsonObject:
        session, option = self._session(params), text_of(params, "configId")
        if option not in {each["id"] for each in session.options.config()}:
            raise invalid_params(f"Unknown config option: {option}", "configId")
        await session.choose(option, text_of(params, "value"))
        if option == "mode":
            self._handle.update(
                session.id, {"sessionUpdate": "current_mode_update", "currentModeId": session.options.mode}
            )
        return {"configOptions": session.options.config()}

    # -- sessions

    async def _start(self, session_id: str, params: JsonObject, *flags: str) -> Session:
        folders = params.get("additionalDirectories")
        words = [*flags]
        for folder in folders if isinstance(folders, list) else []:
            words += ["--add-dir", str(folder)]
        cwd = None if self._boxed else text_of(params, "cwd")
        former = self._sessions.pop(session_id, None)
        if former is not None:
            await former.stop()  # two processes must not write one transcript
        session = Session(session_id, self._handle, self._lost, bypass=self._bypass)
        self._sessions[session_id] = session
        try:
            await session.start(self._spawn, words, cwd, prompt.mcp_servers(params.get("mcpServers")))
        except BaseException:
            self._sessions.pop(session_id, None)
            raise
        return session

    def _told(self, session: Session, answer: JsonObject) -> JsonObject:
        """The commands follow the answer: before it the client does not know the session."""
        asyncio.get_running_loop().call_soon(
            lambda: asyncio.get_running_loop().call_soon(session.tell_commands)
        )
        return answer

    def _session(self, params: JsonObject) -> Session:
        session_id = text_of(params, "sessionId")
        session = self._sessions.get(session_id)
        if session is None:
            raise session_not_found(session_id)
        return session

    def _lost(self, session: Session, end: AgentEnd) -> None:
        """A process of one among several sessions takes only its own with it."""
        self._sessions.pop(session.id, None)
        if not self._sessions:
            self._handle.lost(end)
