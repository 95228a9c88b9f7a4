"""Codex as an agent: ACP requests are served by one `codex app-server` for all its sessions."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterable
from datetime import UTC, datetime

import msgspec

from dragoman import __version__
from dragoman.agents.adapter import Upstream, text_of
from dragoman.agents.codex import approval, items, prompt, user_input
from dragoman.agents.codex.errors import LOGIN
from dragoman.agents.codex.options import CodexOptions
from dragoman.agents.codex.server import UPDATE, Server
from dragoman.agents.codex.thread import Thread
from dragoman.agents.native.agent import NativeAgent
from dragoman.agents.native.earlier import Earlier
from dragoman.agents.native.registry import Native
from dragoman.agents.process import AgentProcess
from dragoman.rpc.request import Request
from dragoman.wire.errors import (
    Malformed,
    RpcError,
    internal,
    invalid_params,
    method_not_found,
    session_not_found,
)
from dragoman.wire.json_types import JsonObject, as_object, objects

log = logging.getLogger(__name__)

CLIENT = {"name": "dragoman", "title": "Dragoman", "version": __version__}
PAGE = 50
SESSIONS: JsonObject = {
    name: {} for name in ("list", "resume", "fork", "close", "delete", "additionalDirectories")
}
_UNKNOWN = re.compile(r"unknown variant|method not found", re.IGNORECASE)
_LOST = re.compile(r"no rollout found|not found|invalid (thread|session) id|unknown thread", re.IGNORECASE)


class CodexAgent(NativeAgent[Thread]):
    """The adapter; also implements `Receiver` for the messages of Codex."""

    def __init__(self, native: Native, handle: Upstream) -> None:
        super().__init__(native, handle)
        self._server = Server(native.name, self, handle.lost)
        self._models: asyncio.Task[list[JsonObject]] | None = None

    def programs(self) -> Iterable[AgentProcess]:
        return [self._server.program] if self._server.program is not None else []

    async def close(self) -> None:
        await self._server.stop()

    async def initialize(self, params: JsonObject) -> JsonObject:
        if self._server.program is None:
            self._answer = await self._server.start(self.native.spawn, CLIENT)
            self._models = asyncio.create_task(self._list_models())  # early: no session waits for it
        version = re.search(r"/(\d+\.\d+\.\d+\S*)", str(self._answer.get("userAgent")))
        return {
            "protocolVersion": 1,
            "agentInfo": {"name": "codex", "title": "Codex", "version": version[1] if version else "unknown"},
            "agentCapabilities": {
                "loadSession": True,
                "promptCapabilities": {"image": True, "audio": False, "embeddedContext": True},
                "mcpCapabilities": {"http": True, "sse": False},
                "sessionCapabilities": SESSIONS,
                "_meta": {"dragoman": {"steer": True, "forkAt": True}},
            },
            "authMethods": [LOGIN],
        }

    # -- threads

    async def begin(self, params: JsonObject) -> Thread:
        return (await self._open("thread/start", params))[0]

    async def reopen(self, params: JsonObject, session_id: str, *, replay: bool) -> Thread:
        thread, stored = await self._open(
            "thread/resume", params, threadId=session_id, **({} if replay else {"excludeTurns": True})
        )
        if replay:
            thread.replay(stored)
        return thread

    async def branch(self, params: JsonObject, session_id: str) -> Thread:
        earlier = Earlier.read(params)
        members = {} if earlier is None else {"lastTurnId": await self._turn_before(session_id, earlier)}
        return (await self._open("thread/fork", params, threadId=session_id, excludeTurns=True, **members))[0]

    async def _turn_before(self, session_id: str, earlier: Earlier) -> str:
        """The id of the last turn before a message; raises `RpcError` if there is none."""
        read = await self._server.ask("thread/read", {"threadId": session_id, "includeTurns": True})
        turns = [
            (str(turn.get("id")), text)
            for turn in objects(as_object(read.get("thread")).get("turns"))
            if (text := items.prompt_of(turn)) is not None
        ]
        return turns[earlier.find([text for _, text in turns]) - 1][0]

    async def list_sessions(self, params: JsonObject) -> JsonObject:
        asked: JsonObject = {"limit": PAGE}
        asked |= {name: params[name] for name in ("cwd", "cursor") if params.get(name)}
        page = await self._server.ask("thread/list", asked)
        result: JsonObject = {"sessions": [_info(thread) for thread in objects(page.get("data"))]}
        if page.get("nextCursor"):
            result["nextCursor"] = page["nextCursor"]
        return result

    async def forget(self, session_id: str) -> None:
        try:
            await self._server.ask("thread/delete", {"threadId": session_id})
        except RpcError as error:
            if not _LOST.search(error.message):
                raise

    async def release(self, conversation: Thread) -> None:
        conversation.cancel()
        try:
            await self._server.ask("thread/unsubscribe", {"threadId": conversation.id})
        except RpcError as error:
            log.info("codex did not close the thread: %s", error, extra={"agent_session": conversation.id})

    async def _list_models(self) -> list[JsonObject]:
        try:
            return objects((await self._server.ask("model/list", {})).get("data"))
        except RpcError as error:
            log.warning("codex does not report its models: %s", error, extra={"agent": self.native.name})
            return []

    async def _open(self, method: str, params: JsonObject, **members: object) -> tuple[Thread, JsonObject]:
        cwd = text_of(params, "cwd")
        asked: JsonObject = {"cwd": cwd, **members}
        more = params.get("additionalDirectories")
        folders = [folder for folder in more if isinstance(folder, str)] if isinstance(more, list) else []
        config = prompt.thread_config(params.get("mcpServers"), folders)
        if config:
            asked["config"] = config
        try:
            started = await self._server.ask(method, asked)
        except RpcError as error:
            former = members.get("threadId")
            if former is not None and _LOST.search(error.message):
                raise session_not_found(str(former)) from error
            if _UNKNOWN.search(error.message):
                raise internal(
                    f"The agent {self.native.name} is too old: it does not know {method}. Install it again: {UPDATE}",
                    "agent_unavailable",
                    agent=self.native.name,
                ) from error
            raise
        stored = as_object(started.get("thread"))
        options = CodexOptions(await self._models if self._models is not None else [], started, folders)
        thread = Thread(text_of(stored, "id"), cwd, options, self._server, self.handle)
        self.conversations[thread.id] = thread
        return thread, stored

    # -- Receiver

    def peer_request(self, request: Request) -> None:
        if request.method not in approval.WORDS and request.method not in user_input.METHODS:
            raise method_not_found(request.method)
        params = as_object(msgspec.json.decode(request.params))
        thread = self.conversations.get(approval.thread_id(params))
        if thread is None:
            raise invalid_params("Unknown thread", "threadId")
        thread.asked(request, params)

    def peer_notification(self, method: str, params: bytes) -> None:
        told = as_object(msgspec.json.decode(params))
        thread = self.conversations.get(str(told.get("threadId")))
        if thread is not None:
            thread.notified(method, told)

    def peer_malformed(self, frame: bytes, error: Malformed) -> bool:
        self._server.garbage(error)
        return False

    def peer_writable(self, writable: bool) -> None:
        """Nothing to do: little is sent, and the gateway reads `backlog`."""

    def peer_closed(self, reason: str | None) -> RpcError:
        error = self._server.closed()
        for thread in self.conversations.values():
            thread.failed(error)
        return error


def _info(thread: JsonObject) -> JsonObject:
    info: JsonObject = {"sessionId": thread.get("id"), "cwd": thread.get("cwd")}
    title = thread.get("name") or str(thread.get("preview") or "").strip().partition("\n")[0]
    if title:
        info["title"] = title
    updated = thread.get("updatedAt")
    if isinstance(updated, int | float):
        info["updatedAt"] = datetime.fromtimestamp(updated, UTC).isoformat().replace("+00:00", "Z")
    return info
