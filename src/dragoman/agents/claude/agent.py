"""Claude Code as an agent: ACP requests are served by `claude` processes, one per session."""

from __future__ import annotations

import asyncio
import hashlib
import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from dragoman.agents.adapter import Upstream, text_of
from dragoman.agents.claude import prompt
from dragoman.agents.claude.history import History
from dragoman.agents.claude.options import DEFAULT, MODES, NEEDS_FLAG
from dragoman.agents.claude.result import LOGIN
from dragoman.agents.claude.session import SETTINGS, Session
from dragoman.agents.native.agent import NativeAgent
from dragoman.agents.native.earlier import Earlier
from dragoman.agents.native.json_file import JsonFile
from dragoman.agents.native.registry import Native
from dragoman.agents.process import AgentProcess
from dragoman.agents.version import ask_version
from dragoman.gateway.ports.agent import AgentEnd
from dragoman.wire.errors import NOT_FOUND, RpcError, session_not_found
from dragoman.wire.json_types import JsonObject, as_object

LEAST_VERSION = (2, 0, 0)
"""Older versions have no `can_use_tool` with suggestions."""
UPDATE = "npm install -g @anthropic-ai/claude-code"


class ClaudeAgent(NativeAgent[Session]):
    """The adapter; in a box we cannot read the transcripts, and the working folder is the box's."""

    def __init__(self, native: Native, handle: Upstream) -> None:
        super().__init__(native, handle)
        self._bypass = any("dangerously-skip-permissions" in word for word in native.config.command)
        self._mode = _first_mode(native.config.command)
        self._setups: dict[str, JsonObject] = {}
        self._lost: dict[str, dict[str, str]] = {}
        """Sessions whose process ended while others go on, with their chosen options."""
        self._history = History(native.environ)
        self._offer = Offer(native.state, native.config.command, native.environ)

    def programs(self) -> Iterable[AgentProcess]:
        return [
            conversation.program
            for conversation in self.conversations.values()
            if conversation.program is not None
        ]

    async def close(self) -> None:
        await asyncio.gather(*(session.stop() for session in self.conversations.values()))

    async def initialize(self, params: JsonObject) -> JsonObject:
        version = await ask_version(self.native.spawn, self.handle.name, LEAST_VERSION, UPDATE)
        self._offer.is_of(version)
        boxed = self.native.boxed
        sessions: JsonObject = {"resume": {}, "fork": {}, "close": {}, "additionalDirectories": {}}
        if not boxed:
            sessions |= {"list": {}, "delete": {}}
        return {
            "protocolVersion": 1,
            "agentInfo": {"name": "claude", "title": "Claude Code", "version": version},
            "agentCapabilities": {
                "loadSession": not boxed,
                "promptCapabilities": {"image": True, "audio": False, "embeddedContext": True},
                "mcpCapabilities": {"http": True, "sse": True},
                "sessionCapabilities": sessions,
                "_meta": {"dragoman": {"steer": True, "reasons": True, "forkAt": not boxed}},
            },
            "authMethods": [LOGIN],
        }

    # -- sessions

    async def begin(self, params: JsonObject) -> Session:
        session_id = str(uuid.uuid4())
        return await self._start(session_id, params, "--session-id", session_id, offer=self._offer.get())

    async def reopen(self, params: JsonObject, session_id: str, *, replay: bool) -> Session:
        updates = await asyncio.to_thread(self._history.updates, session_id) if replay else []
        if updates is None:
            raise session_not_found(session_id)
        session = await self._start(session_id, params, "--resume", session_id)
        for update in updates:
            session.tell(update)
        return session

    async def branch(self, params: JsonObject, session_id: str) -> Session:
        new = str(uuid.uuid4())
        words = ["--resume", session_id, "--fork-session", "--session-id", new]
        earlier = Earlier.read(params)
        if earlier is not None:
            last = await asyncio.to_thread(self._history.message_before, session_id, earlier)
            words += ["--resume-session-at", last]
        return await self._start(new, params, *words)

    async def list_sessions(self, params: JsonObject) -> JsonObject:
        cwd = params.get("cwd")
        sessions = await asyncio.to_thread(self._history.sessions, cwd if isinstance(cwd, str) else None)
        return {"sessions": sessions}

    async def forget(self, session_id: str) -> None:
        await asyncio.to_thread(self._history.forget, session_id)

    async def release(self, conversation: Session) -> None:
        await conversation.stop()

    async def _close(self, params: JsonObject) -> JsonObject:
        session_id = text_of(params, "sessionId")
        self._lost.pop(session_id, None)
        self._setups.pop(session_id, None)
        return await super()._close(params)

    async def restart_conversation(self, session_id: str) -> Session | None:
        chosen = self._lost.get(session_id)
        if chosen is None:
            return None
        setup = self._setups[session_id]
        try:
            session = await self._start(session_id, setup, "--resume", session_id)
        except RpcError as error:
            if error.code != NOT_FOUND:
                raise
            # It died before it had stored anything.
            session = await self._start(session_id, setup, "--session-id", session_id)
        self._lost.pop(session_id, None)
        for option, value in chosen.items():
            if option in SETTINGS and session.options.current[option] != value:
                await session.choose(option, value)
        return session

    async def _start(
        self, session_id: str, params: JsonObject, *flags: str, offer: JsonObject | None = None
    ) -> Session:
        folders = params.get("additionalDirectories")
        words = [*flags]
        for folder in folders if isinstance(folders, list) else []:
            words += ["--add-dir", str(folder)]
        cwd = None if self.native.boxed else text_of(params, "cwd")
        former = self.conversations.pop(session_id, None)
        if former is not None:
            await former.stop()  # two processes must not write one transcript
        session = Session(session_id, self.handle, self, bypass=self._bypass, mode=self._mode)
        self.conversations[session_id] = session
        self._setups[session_id] = params
        try:
            servers = prompt.mcp_servers(params.get("mcpServers"))
            await session.start(self.native.spawn, words, cwd, servers, offer)
        except BaseException:
            self.conversations.pop(session_id, None)
            raise
        return session

    # -- called by sessions

    def opened(self, initialized: JsonObject) -> None:
        """`claude` answered `initialize`."""
        self._offer.keep(initialized)

    def unopened(self, session: Session) -> None:
        """Drop a session that did not start; the next prompt tries again and reports the error."""
        self._offer.forget()
        self.conversations.pop(session.id, None)
        self._lost[session.id] = dict(session.options.current)

    def lost(self, session: Session, end: AgentEnd) -> None:
        """Drop a session whose process ended, until its next request; without any session left, the agent ends."""
        self.conversations.pop(session.id, None)
        self._lost[session.id] = dict(session.options.current)
        if not self.conversations:
            self.handle.lost(end)


def _first_mode(command: Sequence[str]) -> str:
    """The mode that the configured command sets; claude itself reports it only in the first turn."""
    if "--dangerously-skip-permissions" in command:
        return NEEDS_FLAG
    words = [part for word in command for part in word.split("=", 1)]
    named = words[words.index("--permission-mode") + 1 :][:1] if "--permission-mode" in words else []
    return named[0] if named and named[0] in MODES else DEFAULT


OFFERS_FILE = "claude-offers.json"
MOST_OFFERS = 16
"""Most stored offers, one per way to start `claude`; the newest stay."""
ACCOUNT_VARIABLES = ("CLAUDE_CONFIG_DIR", "HOME", "ANTHROPIC_BASE_URL", "ANTHROPIC_MODEL", "CLAUDE_CODE_USE_BEDROCK",
            "CLAUDE_CODE_USE_VERTEX")  # fmt: skip
"""Variables that select the account and the provider, and so the models."""


class Offer:
    """The models that `claude` offered when it was last started in the same way.

    `claude` takes a second to report them. A new session is answered at once with the last known ones, which are
    corrected when the present ones arrive (`Session.start`).
    """

    def __init__(self, folder: Path | None, command: Sequence[str], environ: Mapping[str, str]) -> None:
        self._kept = JsonFile(folder, OFFERS_FILE)
        self._way = [*command, *(environ.get(name, "") for name in ACCOUNT_VARIABLES)]
        self._key: str | None = None

    def is_of(self, version: str) -> None:
        """Set the version, since another one may offer other models."""
        self._key = hashlib.sha256(json.dumps([*self._way, version]).encode()).hexdigest()

    def get(self) -> JsonObject | None:
        """The stored part of the answer to `initialize`; None if there is none."""
        return as_object(self._kept.read().get(self._key or "")) or None

    def keep(self, initialized: JsonObject) -> None:
        models = initialized.get("models")
        if self._key is None or not models or self.get() == {"models": models}:
            return
        others = {key: value for key, value in self._kept.read().items() if key != self._key}
        newest = dict(list(others.items())[-(MOST_OFFERS - 1) :])
        self._kept.write({**newest, self._key: {"models": models}})

    def forget(self) -> None:
        """Drop the offer after a failed start: the next session waits for the start and reports its error."""
        self._kept.write({key: value for key, value in self._kept.read().items() if key != self._key})
