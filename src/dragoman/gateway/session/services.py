"""Routes an agent's `fs/*` and `terminal/*` calls (G-037, G-063, G-064, G-069).

They go to a client that offers them, else to the gateway's own services where those are configured. For an agent in a
sandbox the gateway always serves them: commands run inside, and files are opened without following a symlink. If the
files inside belong to another machine, file methods are not served. Rules decide before that (`policy/gate.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Raw

from dragoman.gateway.bounded_dict import BoundedDict
from dragoman.gateway.delivery.replay import ForeignTerminals
from dragoman.gateway.json_types import JsonObject, as_object, decode_object, encode, read_object
from dragoman.gateway.lifecycle.workspace import check_agent_path
from dragoman.gateway.ports.sandbox import Box
from dragoman.gateway.ports.services import LocalServices
from dragoman.gateway.session.checkpoints.checkpointing import Checkpointing
from dragoman.gateway.session.terminals.live_terminals import LiveTerminals
from dragoman.rpc.request import Reply, Request
from dragoman.wire import limits, message
from dragoman.wire.errors import Malformed, internal, method_not_found

if TYPE_CHECKING:
    from dragoman.gateway.access.client import Client
    from dragoman.gateway.session.session import Session

FS_METHODS = frozenset({"fs/read_text_file", "fs/write_text_file"})
TERMINAL_METHODS = frozenset(
    f"terminal/{verb}" for verb in ("create", "output", "wait_for_exit", "kill", "release")
)
METHODS = FS_METHODS | TERMINAL_METHODS

ENDED = ("exitStatus", "truncated")
"""Members of a `terminal/output` result besides the text."""


def _check_path(request: Request) -> None:
    """Raise for a path that a client could resolve differently than the agent."""
    params = decode_object(request.params)
    if request.method in FS_METHODS:
        check_agent_path(params.get("path"), "path")
    elif params.get("cwd") is not None:
        check_agent_path(params["cwd"], "cwd")


class Services:
    """Files and terminals of one session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.checkpoints = Checkpointing(session)
        self._local: LocalServices | None = None
        self._terminals: dict[str, Client] = {}
        self._renamed: dict[str, str] = {}
        """The client's id of a terminal by the agent's id, where they differ."""
        self._owners: BoundedDict[Client | None] = BoundedDict(limits.KNOWN_TERMINALS)
        """The client that runs each terminal created by this process; None for the gateway's own, or if it is gone."""
        self._creating = 0
        """Number of terminals that clients were asked for and have not created yet."""
        self._outputs: dict[str, str] = {}
        self._ends: dict[str, JsonObject] = {}
        self._asked: set[str] = set()
        """Terminals whose client was asked for the output and has not answered yet."""
        self._live = LiveTerminals(session, self._look)

    def call(self, request: Request) -> None:
        if request.method in TERMINAL_METHODS and request.method != "terminal/create":
            self._terminal(request)
            return
        client = self._offering(request.method)
        served = client is not None or self._serves(request.method)
        if client is not None or (served and self._box is None):
            _check_path(request)  # paths inside a sandbox are checked where they are opened
        if served and not self._session.follows:  # its owner has asked its rules
            self._session.policy.serve(request, lambda: self._route(request))
        else:
            self._route(request)

    def _route(self, request: Request) -> None:
        client = self._offering(request.method)
        if client is not None:
            if request.method == "terminal/create":
                self._take_place()
            self._forward(request, client)
        elif self._serves(request.method):
            self._serve(request)
        elif not self._session.attachments:
            raise internal("No client is attached to this session", "no_client")
        else:
            raise method_not_found(request.method)

    def _take_place(self) -> None:
        """Count a terminal before the client is asked for it, so that simultaneous requests count too."""
        if len(self._terminals) + self._creating >= limits.OPEN_TERMINALS:
            raise internal(
                f"The agent has {limits.OPEN_TERMINALS} terminals open; release some first",
                "too_many_terminals",
            )
        self._creating += 1

    def release_terminals(self) -> None:
        """Release the terminals of an agent that is gone (G-110, D-92)."""
        for terminal, client in self._terminals.items():
            known = self._client_id(terminal)
            self._record_output(known)
            params = {"sessionId": self._session.id, "terminalId": known}
            client.peer.request("terminal/release", encode(params), lambda reply: None)
        self._terminals.clear()
        self._renamed.clear()
        self._creating = 0

    def client_gone(self, client: Client) -> None:
        self._terminals = {
            terminal: owner for terminal, owner in self._terminals.items() if owner is not client
        }
        for terminal in [each for each, owner in self._owners.items() if owner is client]:
            self._owners[terminal] = None

    @property
    def outputs(self) -> dict[str, str]:
        """The last known output of terminals that this process created."""
        return self._outputs

    def foreign_terminals(self, client: Client) -> ForeignTerminals:
        """What a client is shown in place of terminals that it does not run."""
        foreign = frozenset(each for each, owner in self._owners.items() if owner is not client)
        return ForeignTerminals(foreign, self._outputs, self._live)

    async def close(self) -> None:
        for terminal in [
            each for each, owner in self._owners.items() if owner is None and each in self._live
        ]:
            self._look(terminal)
            self._record_output(terminal)
        self._live.close()
        if self._local is not None:
            await self._local.close()
            self._local = None

    def tool_content_for_client(self, tool: JsonObject) -> bool:
        """Replace terminal ids inside a tool call by those that the client issued; True if any changed."""
        changed = False
        content = tool.get("content")
        for item in content if self._terminals and isinstance(content, list) else ():
            terminal = as_object(item).get("terminalId")
            owner = self._terminals.get(terminal) if isinstance(terminal, str) else None
            if owner is not None and self._client_id(str(terminal)) != terminal:
                item["terminalId"] = self._client_id(str(terminal))
                changed = True
        self._live.see_call(tool)
        return changed

    def _terminal(self, request: Request) -> None:
        terminal = str(decode_object(request.params).get("terminalId"))
        client = self._terminals.get(terminal)
        if client is None and self._local is not None:
            self._serve(request)
            return
        client = client or self._offering(request.method)
        if client is None:
            raise method_not_found(request.method)
        known = self._client_id(terminal)
        if request.method != "terminal/release":
            self._forward(request, client, terminalId=known)
            return
        self._terminals.pop(terminal, None)
        # A replay will show the last output, which is asked for before the terminal is gone.
        params = encode({"sessionId": self._session.id, "terminalId": known})

        def release(reply: Reply) -> None:
            self._renamed.pop(terminal, None)
            if reply.ok:
                self._keep_output(known, reply.result)
            self._record_output(known)
            self._forward(request, client, terminalId=known)

        client.peer.request("terminal/output", params, release)

    def _serve(self, request: Request) -> None:
        """Serve a request here; clients do not know these terminals and are shown their output instead."""
        method, params = request.method, request.params
        if method == "terminal/release":  # a replay will show the last output
            self._look(str(decode_object(params).get("terminalId")))

        def seen(result: bytes) -> None:
            if method == "terminal/create":
                self._own(str(decode_object(result).get("terminalId")), None)
            terminal = str(decode_object(params).get("terminalId"))
            if method == "terminal/output":
                self._keep_output(terminal, result)
            elif method == "terminal/release":
                self._record_output(terminal)

        request.on_result = seen
        self._open_local().serve(request)

    def _forward(self, request: Request, client: Client, **changes: object) -> None:
        params = message.members(request.params)
        params["sessionId"] = Raw(encode(self._session.id))
        for name, value in changes.items():
            params[name] = Raw(encode(value))
        self._session.forwarding.to_client(
            request, client, encode(params), lambda reply: self._result(request, client, reply)
        )

    def _result(self, request: Request, client: Client, reply: Reply) -> Reply:
        if request.method == "terminal/create":
            self._creating = max(self._creating - 1, 0)
            return self._created(client, reply) if reply.ok else reply
        if request.method == "terminal/output" and reply.ok:
            terminal = self._client_id(str(decode_object(request.params).get("terminalId")))
            self._keep_output(terminal, reply.result)
        if request.method == "fs/write_text_file" and reply.ok and reply.result == b"null":
            return Reply(result=message.EMPTY)  # null is the answer in the ACP documentation (D-91)
        return reply

    def _keep_output(self, terminal: str, result: bytes) -> None:
        """Save the output that other clients now, and replays later, show in place of the terminal (G-069)."""
        told = read_object(result)
        self._outputs[terminal] = str(told.get("output", ""))
        self._ends[terminal] = {name: told[name] for name in ENDED if told.get(name)}
        self._live.tell(terminal, self._outputs[terminal], self._ends[terminal], self._owners.get(terminal))
        size = sum(map(len, self._outputs.values()))
        while len(self._outputs) > 1 and (
            len(self._outputs) > limits.TERMINAL_OUTPUTS or size > limits.TERMINAL_OUTPUT_BYTES
        ):
            oldest = next(each for each in self._outputs if each != terminal)
            size -= len(self._outputs.pop(oldest))
            del self._ends[oldest]

    def _record_output(self, terminal: str) -> None:
        """Journal the output that was not journaled while the terminal ran."""
        self._live.end(terminal, self._outputs.get(terminal), self._ends.get(terminal, {}))

    def _look(self, terminal: str) -> bool:
        """Read a terminal's output so far, or ask its client for it; False when the terminal has ended or is gone."""
        client = self._owners.get(terminal)
        if client is not None:
            return self._ask_output(terminal, client)
        output = self._local.terminal_output(terminal) if self._local is not None else None
        if output is None:
            return False
        self._keep_output(terminal, output)
        return "exitStatus" not in self._ends[terminal]

    def _ask_output(self, terminal: str, client: Client) -> bool:
        """Ask a client for its terminal's output if other clients are attached; False when it need not be asked again.

        Only during a turn: some agents never release a terminal, and the polling would not end.
        """
        known = (self._client_id(agent_id) for agent_id in self._terminals)
        if self._session.turn is None or terminal not in known:
            return False
        watched = any(attachment.client is not client for attachment in self._session.attachments)
        if watched and terminal not in self._asked:
            self._asked.add(terminal)
            params = {"sessionId": self._session.id, "terminalId": terminal}

            def printed(reply: Reply) -> None:
                self._asked.discard(terminal)
                if reply.ok and terminal in self._live:
                    self._keep_output(terminal, reply.result)

            client.peer.request("terminal/output", encode(params), printed)
        return True

    def _own(self, terminal: str, client: Client | None) -> None:
        self._owners[terminal] = client
        self._session.record("terminal_created", terminalId=terminal)
        self._live.begin(terminal, ours=client is None)
        self._session.entry.save_extra(terminals=True)

    def _created(self, client: Client, reply: Reply) -> Reply:
        try:
            members = message.members(reply.result)
            terminal = str(decode_object(reply.result).get("terminalId"))
        except Malformed:
            return reply
        agent_id = self._agent_id(terminal, client)
        self._terminals[agent_id] = client
        if agent_id != terminal:
            self._renamed[agent_id] = terminal
        self._own(terminal, client)
        if agent_id == terminal:
            return reply
        return Reply(result=encode({**members, "terminalId": agent_id}))

    def _agent_id(self, terminal: str, client: Client) -> str:
        """The agent's id of a terminal: clients issue ids, so two clients of one agent may issue the same (G-069)."""
        taken = self._terminals.get(terminal) not in (None, client)
        return f"{client.key}:{terminal}" if taken or self._session.shares_agent else terminal

    def _client_id(self, terminal: str) -> str:
        return self._renamed.get(terminal, terminal)

    @property
    def _box(self) -> Box | None:
        """The sandbox that isolates the agent from this machine; None if there is none."""
        box = self._session.agent.box if self._session.agent is not None else None
        return box if box is not None and box.apart else None

    def _offering(self, method: str) -> Client | None:
        """The client that prompted if it offers the method, else any other that does.

        None for a session in a worktree, which is no part of the client's project, and for an agent in a sandbox: a
        client would run commands outside, and would follow a symlink that the agent
        puts in the place of a file after our check.
        """
        if self._box is not None or self._session.entry.repository is not None:
            return None
        for client in self._session.clients_by_preference():
            offered = (
                client.capabilities.has_fs(method) if method in FS_METHODS else client.capabilities.terminal
            )
            if offered:
                return client
        return None

    def _serves(self, method: str) -> bool:
        config = self._session.agent_config
        if self._box is not None:
            return method in TERMINAL_METHODS or not self._box.elsewhere
        if self._session.entry.repository is not None:
            return True
        return config.serve_fs if method in FS_METHODS else config.serve_terminal

    def _open_local(self) -> LocalServices:
        if self._local is None:
            self._local = self._session.open_services()
        return self._local
