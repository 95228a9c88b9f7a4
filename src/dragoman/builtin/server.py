"""The ACP methods of the built-in agent.

`initialize` is answered with only the wire modules imported; the model libraries are imported in a thread
afterwards, so that they are ready for the first prompt.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman import __version__
from dragoman.builtin.acp_server import AcpServer
from dragoman.builtin.models.spent import Spent
from dragoman.rpc.request import Request
from dragoman.wire.errors import (
    RpcError,
    internal,
    invalid_params,
    invalid_request,
)
from dragoman.wire.json_types import as_object, decode_object

if TYPE_CHECKING:
    from dragoman.builtin.models.choice import ModelConfig
    from dragoman.builtin.session import Session
    from dragoman.builtin.sessions import Sessions

Json = dict[str, Any]

PROTOCOL_VERSION = 1

CAPABILITIES: Json = {
    "loadSession": True,
    "promptCapabilities": {"image": True, "audio": True, "embeddedContext": True},
    "mcpCapabilities": {"http": True, "sse": True},
    "sessionCapabilities": {
        "list": {},
        "delete": {},
        "resume": {},
        "close": {},
        "additionalDirectories": {},
    },
    "_meta": {"dragoman": {"reasons": True}},
}


class Server(AcpServer):
    """Answers the methods of ACP for the sessions of this process."""

    def __init__(self, config: ModelConfig, state: Path | None) -> None:
        super().__init__()
        self._config = config
        self._state = state
        self._sessions: Sessions | None = None
        self._initialized = False
        self.methods = {
            "authenticate": self.authenticate,
            "session/new": self._new,
            "session/load": self._load,
            "session/resume": self._resume,
            "session/list": self._list,
            "session/close": self._close,
            "session/delete": self._delete,
            "session/prompt": self._prompt,
            "session/cancel": self._cancel,
            "session/set_mode": self._set_mode,
            "session/set_config_option": self._set_config_option,
        }

    # -- Receiver

    def peer_request(self, request: Request) -> None:
        if request.method == "initialize":  # at once: the next request may have come with it
            request.reply(msgspec.json.encode(self._initialize(decode_object(request.params))))
        elif request.method in self.methods and not self._initialized:
            raise invalid_request("initialize comes first")
        else:
            super().peer_request(request)

    def failure(self, error: Exception) -> RpcError:
        return internal("Internal error in the built-in agent; its log has the details")

    async def close(self) -> None:
        """End every turn, command and MCP server that was started here."""
        if self._sessions is not None:
            await self._sessions.close_all()
        self.cancel_tasks()

    # -- methods

    def _initialize(self, params: Json) -> Json:
        if type(params.get("protocolVersion")) is not int:
            raise invalid_params("protocolVersion must be an integer", "protocolVersion")
        self.client.capabilities = as_object(params.get("clientCapabilities"))
        self._initialized = True
        asyncio.get_running_loop().call_soon(self._prepare)
        return {
            "protocolVersion": PROTOCOL_VERSION,
            "agentCapabilities": CAPABILITIES,
            "agentInfo": {"name": "dragoman-builtin", "title": "Dragoman", "version": __version__},
            "authMethods": [],
        }

    def _prepare(self) -> None:
        """Import what the first prompt needs, after the answer to `initialize` was sent."""
        from dragoman.builtin.models.choice import installed
        from dragoman.builtin.models.preload import load

        if self.sessions.models.default() is not None and installed():
            self.spawn(asyncio.to_thread(load, "dragoman.builtin.loop"))

    @property
    def sessions(self) -> Sessions:
        if self._sessions is None:
            from dragoman.builtin.sessions import Sessions

            self._sessions = Sessions.open(self.client, self._config, self._state)
        return self._sessions

    async def _new(self, params: Json) -> Json:
        cwd, roots = _folders(params)
        session = self.sessions.new(cwd, roots)
        self._start_servers(session, params)
        # After the answer: until then the client does not know the session.
        asyncio.get_running_loop().call_soon(self._tell_commands, session)
        return {"sessionId": session.id, **session.state()}

    async def _load(self, params: Json) -> Json:
        """Replay the history, send the current commands, then answer."""
        session = self._reopen(params)
        for update in session.history.updates:
            self.client.update(session.id, update)
            await self.client.wait_writable()
        self._tell_commands(session)
        return session.state()

    async def _resume(self, params: Json) -> Json:
        session = self._reopen(params)
        self._tell_commands(session)
        return session.state()

    async def _list(self, params: Json) -> Json:
        cwd, cursor = params.get("cwd"), params.get("cursor")
        return await asyncio.to_thread(
            self.sessions.list,
            cwd if isinstance(cwd, str) else None,
            cursor if isinstance(cursor, str) else None,
        )

    async def _close(self, params: Json) -> Json:
        await self.sessions.close(self.sessions.find(params.get("sessionId")).id)
        return {}

    async def _delete(self, params: Json) -> Json:
        await self.sessions.delete(_text(params, "sessionId"))
        return {}

    async def _prompt(self, params: Json) -> Json:
        from dragoman.builtin.turn import UNANSWERED, run_turn

        session = self.sessions.find(params.get("sessionId"))
        prompt = params.get("prompt")
        if not isinstance(prompt, list) or not all(isinstance(block, dict) for block in prompt):
            raise invalid_params("prompt must be a list of content blocks", "prompt")
        if session.turn is not None and not session.turn.done():
            raise invalid_request("A prompt of this session is still being answered", "turn_in_progress")
        session.spent = Spent()
        session.turn = turn = asyncio.ensure_future(run_turn(session, prompt))
        await asyncio.wait([turn])
        try:
            # A task that was cancelled before its first step has no result.
            reason = "cancelled" if turn.cancelled() else turn.result()
        except RpcError as error:
            if session.spent.total and isinstance(error.data, dict):
                error.data = {**error.data, "_meta": {"dragoman": {"usage": [session.spent.usage()]}}}
            raise
        if reason == UNANSWERED:
            return {"stopReason": "end_turn", "_meta": {"dragoman": {"unanswered": "no_model"}}}
        return {"stopReason": reason, **({"usage": session.spent.usage()} if session.spent.total else {})}

    async def _cancel(self, params: Json) -> Json:
        session = self.sessions.get(params.get("sessionId"))
        if session is not None and session.turn is not None:
            session.turn.cancel()
        return {}

    async def _set_mode(self, params: Json) -> Json:
        session = self.sessions.find(params.get("sessionId"))
        session.set_mode(_text(params, "modeId"))
        session.save()
        return {}

    async def _set_config_option(self, params: Json) -> Json:
        session = self.sessions.find(params.get("sessionId"))
        return {"configOptions": session.set_option(_text(params, "configId"), params.get("value"))}

    # -- underneath

    def _reopen(self, params: Json) -> Session:
        cwd, roots = _folders(params)
        session = self.sessions.reopen(_text(params, "sessionId"), cwd, roots)
        self._start_servers(session, params)
        return session

    def _start_servers(self, session: Session, params: Json) -> None:
        from dragoman.builtin.mcp.servers import McpServers

        servers = params.get("mcpServers")
        if isinstance(servers, list) and servers and session.mcp is None:
            session.mcp = McpServers(servers, session.cwd)
            session.mcp.start()

    def _tell_commands(self, session: Session) -> None:
        from dragoman.builtin.commands.slash import available_commands

        commands = available_commands(session)
        session.update(
            {"sessionUpdate": "available_commands_update", "availableCommands": commands}, passing=True
        )


def _text(params: Json, name: str) -> str:
    value = params.get(name)
    if not isinstance(value, str) or not value:
        raise invalid_params(f"{name} must be text", name)
    return value


def _folders(params: Json) -> tuple[str, list[str]]:
    more = params.get("additionalDirectories")
    roots = [root for root in more if isinstance(root, str)] if isinstance(more, list) else []
    return _text(params, "cwd"), roots
