"""Routes an agent's `fs/*` and `terminal/*` calls to the client that offers them (G-037, G-063, G-064, G-069)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Raw

from dragoman.gateway.json_types import JsonObject, as_object, decode_object, encode
from dragoman.gateway.ports.services import LocalServices
from dragoman.gateway.replay import ForeignTerminals
from dragoman.rpc.peer import Reply, Request
from dragoman.wire import message
from dragoman.wire.errors import Malformed, method_not_found

if TYPE_CHECKING:
    from dragoman.gateway.client import ClientConnection
    from dragoman.gateway.session import Session

FS_METHODS = frozenset({"fs/read_text_file", "fs/write_text_file"})
TERMINAL_METHODS = frozenset(
    f"terminal/{verb}" for verb in ("create", "output", "wait_for_exit", "kill", "release")
)
METHODS = FS_METHODS | TERMINAL_METHODS

MAX_OUTPUTS = 100
"""Outputs of terminals kept for other clients; older ones are in the journal."""


class Services:
    """One session's calls to its client's files and terminals."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._local: LocalServices | None = None
        self._terminals: dict[str, ClientConnection] = {}
        self._released: dict[ClientConnection, frozenset[str]] = {}
        self._outputs: dict[str, str] = {}

    def call(self, request: Request) -> None:
        if request.method in TERMINAL_METHODS and request.method != "terminal/create":
            self._terminal(request)
            return
        client = self._offering(request.method)
        if client is not None:
            self._forward(request, client)
        elif self._serves(request.method):
            self._open_local().serve(request)
        else:
            raise method_not_found(request.method)

    def release_terminals(self) -> None:
        """The agent is gone and cannot do it any more (G-110, D-92)."""
        for terminal, client in self._terminals.items():
            params = {"sessionId": self._session.id, "terminalId": self._client_id(terminal, client)}
            client.peer.request("terminal/release", encode(params), lambda reply: None)
        self._terminals.clear()

    def client_gone(self, client: ClientConnection) -> None:
        self._released.pop(client, None)
        self._terminals = {
            terminal: owner for terminal, owner in self._terminals.items() if owner is not client
        }

    def foreign_terminals(self, client: ClientConnection) -> ForeignTerminals:
        """What a client sees in place of terminals that run elsewhere."""
        own = frozenset(
            self._client_id(each, client) for each, owner in self._terminals.items() if owner is client
        )
        return ForeignTerminals(own | self._released.get(client, frozenset()), self._outputs)

    async def close(self) -> None:
        if self._local is not None:
            await self._local.close()
            self._local = None

    def tool_content_for_client(self, tool: JsonObject) -> bool:
        """Terminal ids inside a tool call, as the client issued them; True if any changed."""
        changed = False
        content = tool.get("content")
        for item in content if isinstance(content, list) else []:
            terminal = as_object(item).get("terminalId")
            owner = self._terminals.get(terminal) if isinstance(terminal, str) else None
            if owner is not None and self._client_id(str(terminal), owner) != terminal:
                item["terminalId"] = self._client_id(str(terminal), owner)
                changed = True
        return changed

    def _terminal(self, request: Request) -> None:
        terminal = str(decode_object(request.params).get("terminalId"))
        client = self._terminals.get(terminal)
        if client is None and self._local is not None:
            self._local.serve(request)
            return
        client = client or self._offering(request.method)
        if client is None:
            raise method_not_found(request.method)
        if request.method == "terminal/release":
            self._terminals.pop(terminal, None)
            # The client goes on showing a terminal that was released (ACP v1, terminals).
            known = self._released.get(client, frozenset())
            self._released[client] = known | {self._client_id(terminal, client)}
        self._forward(request, client, terminalId=self._client_id(terminal, client))

    def _forward(self, request: Request, client: ClientConnection, **changes: object) -> None:
        params = message.members(request.params)
        params["sessionId"] = Raw(encode(self._session.id))
        for name, value in changes.items():
            params[name] = Raw(encode(value))
        self._session.forward_to_client(
            request, client, encode(params), lambda reply: self._result(request, client, reply)
        )

    def _result(self, request: Request, client: ClientConnection, reply: Reply) -> Reply:
        if request.method == "terminal/create" and reply.ok:
            return self._created(client, reply)
        if request.method == "terminal/output" and reply.ok:
            self._keep_output(request, client, reply)
        if request.method == "fs/write_text_file" and reply.ok and reply.result == b"null":
            return Reply(result=message.EMPTY)  # the documentation's null (D-91)
        return reply

    def _keep_output(self, request: Request, client: ClientConnection, reply: Reply) -> None:
        """The last output is what a replay shows in place of a terminal that is long gone (G-069)."""
        terminal = self._client_id(str(decode_object(request.params).get("terminalId")), client)
        output = decode_object(reply.result).get("output")
        self._outputs[terminal] = str(output)
        if len(self._outputs) > MAX_OUTPUTS:
            del self._outputs[next(iter(self._outputs))]
        self._session.record("terminal_output", terminalId=terminal, output=output)

    def _created(self, client: ClientConnection, reply: Reply) -> Reply:
        try:
            members = message.members(reply.result)
            terminal = str(decode_object(reply.result).get("terminalId"))
        except Malformed:
            return reply
        agent_id = self._agent_id(terminal, client)
        self._terminals[agent_id] = client
        self._session.terminals_used()
        if agent_id == terminal:
            return reply
        return Reply(result=encode({**members, "terminalId": agent_id}))

    def _agent_id(self, terminal: str, client: ClientConnection) -> str:
        """Clients issue terminal ids, so in a shared process two of them may clash (G-069)."""
        return f"{client.key}:{terminal}" if self._session.shares_agent else terminal

    def _client_id(self, terminal: str, client: ClientConnection) -> str:
        return terminal.removeprefix(f"{client.key}:") if self._session.shares_agent else terminal

    def _offering(self, method: str) -> ClientConnection | None:
        """The client that prompted if it offers the method, else any other that does."""
        for client in self._session.clients_by_preference():
            offered = (
                client.capabilities.has_fs(method) if method in FS_METHODS else client.capabilities.terminal
            )
            if offered:
                return client
        return None

    def _serves(self, method: str) -> bool:
        config = self._session.agent_config
        return config.serve_fs if method in FS_METHODS else config.serve_terminal

    def _open_local(self) -> LocalServices:
        if self._local is None:
            self._local = self._session.open_services()
        return self._local
