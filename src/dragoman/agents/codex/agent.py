"""Codex as an agent: what ACP asks, done with one `codex app-server` for all its sessions."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime

import msgspec

from dragoman import __version__
from dragoman.agents.acp import AcpAgent
from dragoman.agents.adapter import AdapterHandle, text_of
from dragoman.agents.codex import approval, prompt
from dragoman.agents.codex.errors import LOGIN
from dragoman.agents.codex.options import Options
from dragoman.agents.codex.server import Server
from dragoman.agents.codex.thread import Thread
from dragoman.agents.json_types import JsonObject, as_object, objects
from dragoman.agents.native import Native
from dragoman.rpc.peer import Request
from dragoman.wire.errors import Malformed, RpcError, invalid_params, method_not_found, session_not_found

CLIENT = {"name": "dragoman", "title": "Dragoman", "version": __version__}
PAGE = 50
_LOST = re.compile(r"no rollout found|not found|invalid (thread|session) id|unknown thread", re.IGNORECASE)


class CodexAgent:
    """Implements `Tongue`, and `Receiver` for what Codex says."""

    def __init__(self, native: Native, handle: AdapterHandle) -> None:
        self._native = native
        self._handle = handle
        self._server = Server(native.name, self, handle.lost)
        self._threads: dict[str, Thread] = {}
        self._models: list[JsonObject] | None = None
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
        thread = self._threads.get(str(params.get("sessionId")))
        if thread is not None:
            thread.cancel()

    def programs(self) -> Iterable[AcpAgent]:
        return [self._server.program] if self._server.program is not None else []

    async def close(self) -> None:
        await self._server.stop()

    # -- requests

    async def _initialize(self, params: JsonObject) -> JsonObject:
        if self._server.program is None:
            self._answer = await self._server.start(self._native.spawn, CLIENT)
        version = re.search(r"/(\d+\.\d+\.\d+\S*)", str(self._answer.get("userAgent")))
        return {
            "protocolVersion": 1,
            "agentInfo": {"name": "codex", "title": "Codex", "version": version[1] if version else "unknown"},
            "agentCapabilities": {
                "loadSession": True,
                "promptCapabilities": {"image": True, "audio": False, "embeddedContext": True},
                "mcpCapabilities": {"http": True, "sse": False},
                "sessionCapabilities": {"list": {}, "resume": {}, "fork": {}, "close": {}},
            },
            "authMethods": [LOGIN],
        }

    async def _authenticate(self, params: JsonObject) -> JsonObject:
        """The login happens in a terminal, or is an environment variable; the next prompt tells whether it helped."""
        return {}

    async def _new(self, params: JsonObject) -> JsonObject:
        thread, _ = await self._open("thread/start", params)
        return {"sessionId": thread.id, **thread.options.state()}

    async def _load(self, params: JsonObject) -> JsonObject:
        thread, stored = await self._open("thread/resume", params, threadId=text_of(params, "sessionId"))
        thread.replay(stored)
        return thread.options.state()

    async def _resume(self, params: JsonObject) -> JsonObject:
        former = text_of(params, "sessionId")
        thread, _ = await self._open("thread/resume", params, threadId=former, excludeTurns=True)
        return thread.options.state()

    async def _fork(self, params: JsonObject) -> JsonObject:
        former = text_of(params, "sessionId")
        thread, _ = await self._open("thread/fork", params, threadId=former, excludeTurns=True)
        return {"sessionId": thread.id, **thread.options.state()}

    async def _list(self, params: JsonObject) -> JsonObject:
        asked: JsonObject = {"limit": PAGE}
        asked |= {name: params[name] for name in ("cwd", "cursor") if params.get(name)}
        page = await self._server.ask("thread/list", asked)
        result: JsonObject = {"sessions": [_info(thread) for thread in objects(page.get("data"))]}
        if page.get("nextCursor"):
            result["nextCursor"] = page["nextCursor"]
        return result

    async def _close(self, params: JsonObject) -> JsonObject:
        thread = self._threads.pop(text_of(params, "sessionId"), None)
        if thread is not None:
            thread.cancel()
        return {}

    async def _prompt(self, params: JsonObject) -> JsonObject:
        return await self._thread(params).prompt(params.get("prompt"))

    async def _set_mode(self, params: JsonObject) -> JsonObject:
        thread = self._thread(params)
        thread.options.choose("mode", text_of(params, "modeId"))
        thread.tell({"sessionUpdate": "config_option_update", "configOptions": thread.options.config()})
        return {}

    async def _set_model(self, params: JsonObject) -> JsonObject:
        thread = self._thread(params)
        thread.options.choose("model", text_of(params, "modelId"))
        thread.tell({"sessionUpdate": "current_model_update", "currentModelId": thread.options.model})
        thread.tell({"sessionUpdate": "config_option_update", "configOptions": thread.options.config()})
        return {}

    async def _set_config_option(self, params: JsonObject) -> JsonObject:
        thread, option = self._thread(params), text_of(params, "configId")
        if option not in {each["id"] for each in thread.options.config()}:
            raise invalid_params(f"Unknown config option: {option}", "configId")
        thread.options.choose(option, text_of(params, "value"))
        if option == "mode":
            thread.tell({"sessionUpdate": "current_mode_update", "currentModeId": thread.options.mode})
        return {"configOptions": thread.options.config()}

    # -- Receiver

    def peer_request(self, request: Request) -> None:
        if request.method not in approval.WORDS:
            raise method_not_found(request.method)
        params = as_object(msgspec.json.decode(request.params))
        thread = self._threads.get(approval.thread_id(params))
        if thread is None:
            raise invalid_params("Unknown thread", "threadId")
        thread.asked(request, params)

    def peer_notification(self, method: str, params: bytes) -> None:
        told = as_object(msgspec.json.decode(params))
        thread = self._threads.get(str(told.get("threadId")))
        if thread is not None:
            thread.heard(method, told)

    def peer_malformed(self, frame: bytes, error: Malformed) -> bool:
        self._server.garbage(error)
        return False

    def peer_writable(self, writable: bool) -> None:
        """What is sent is little; the gateway asks for `backlog`."""

    def peer_closed(self, reason: str | None) -> RpcError:
        return self._server.closed()

    # -- threads

    async def _open(self, method: str, params: JsonObject, **members: object) -> tuple[Thread, JsonObject]:
        cwd = text_of(params, "cwd")
        asked: JsonObject = {"cwd": cwd, **members}
        config = prompt.thread_config(params.get("mcpServers"))
        if config:
            asked["config"] = config
        try:
            started = await self._server.ask(method, asked)
        except RpcError as error:
            former = members.get("threadId")
            if former is not None and _LOST.search(error.message):
                raise session_not_found(str(former)) from error
            raise
        stored = as_object(started.get("thread"))
        if self._models is None:
            self._models = objects((await self._server.ask("model/list", {})).get("data"))
        options = Options(self._models, started)
        thread = Thread(text_of(stored, "id"), cwd, options, self._server, self._handle)
        self._threads[thread.id] = thread
        return thread, stored

    def _thread(self, params: JsonObject) -> Thread:
        id = text_of(params, "sessionId")
        thread = self._threads.get(id)
        if thread is None:
            raise session_not_found(id)
        return thread


def _info(thread: JsonObject) -> JsonObject:
    info: JsonObject = {"sessionId": thread.get("id"), "cwd": thread.get("cwd")}
    title = thread.get("name") or str(thread.get("preview") or "").strip().partition("\n")[0]
    if title:
        info["title"] = title
    updated = thread.get("updatedAt")
    if isinstance(updated, int | float):
        info["updatedAt"] = datetime.fromtimestamp(updated, UTC).isoformat().replace("+00:00", "Z")
    return info
