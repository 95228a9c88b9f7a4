"""A conversation that the gateway owns: its agent, its attachments, its turn."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from dragoman.config.model import AgentConfig, PolicyConfig
from dragoman.gateway import questions, services
from dragoman.gateway.attachment import Attachment
from dragoman.gateway.content import check_prompt, prompt_params
from dragoman.gateway.feed import DirectFeed, Feed
from dragoman.gateway.json_types import JsonObject, decode_object, encode
from dragoman.gateway.options import Options
from dragoman.gateway.ports.services import LocalServices
from dragoman.gateway.questions import Questions
from dragoman.gateway.rewrite import reply_for_client, with_session
from dragoman.gateway.services import Services
from dragoman.gateway.tools import OpenTools
from dragoman.gateway.turn import Turn
from dragoman.gateway.updates import LOOKED_AT, UpdateRewriter, update_line
from dragoman.rpc.peer import Reply, Request
from dragoman.wire import message
from dragoman.wire.errors import RpcError, internal, invalid_request, session_not_found

if TYPE_CHECKING:
    from dragoman.gateway.agent import AgentConnection
    from dragoman.gateway.client import ClientConnection
    from dragoman.gateway.gateway import Gateway

log = logging.getLogger(__name__)


class Session:
    def __init__(self, gateway: Gateway, id: str, agent_name: str, cwd: str, workspace: str) -> None:
        self.gateway = gateway
        self.id = id
        self.agent_name = agent_name
        self.cwd = cwd
        self.workspace = workspace
        self.additional_directories: list[str] = []
        self.agent: AgentConnection | None = None
        self.agent_session_id = ""
        self.feed: Feed = DirectFeed()
        self.options = Options()
        self.tools = OpenTools()
        self.questions = Questions(self)
        self.services = Services(self)
        self.turn: Turn | None = None
        self.gone: RpcError | None = None
        """Why the agent of this session is not there any more."""
        self._muted = False
        self._forwarded: dict[Request, tuple[ClientConnection, int]] = {}
        self._rewriter = UpdateRewriter("", id, self._see)

    # -- agent and attachments

    def bind(self, agent: AgentConnection, agent_session_id: str) -> None:
        self.agent = agent
        self.agent_session_id = agent_session_id
        self.gone = None
        self._rewriter = UpdateRewriter(agent_session_id, self.id, self._see)

    def attach(self, client: ClientConnection) -> None:
        if client not in (attachment.client for attachment in self.attachments):
            attachment = Attachment(client, self)
            self.attachments.append(attachment)
            client.attachments[self.id] = attachment

    def detach(self, client: ClientConnection) -> None:
        self.feed.attachments = [each for each in self.attachments if each.client is not client]
        client.attachments.pop(self.id, None)
        self.questions.client_gone(client)
        self.services.client_gone(client)
        if self.agent is not None:
            self.agent.release(client)

    @property
    def attachments(self) -> list[Attachment]:
        return self.feed.attachments

    @property
    def shares_agent(self) -> bool:
        return self.agent is not None and self.agent.shared

    @property
    def agent_config(self) -> AgentConfig:
        return self.gateway.agent_config(self.agent_name)

    @property
    def policy(self) -> PolicyConfig:
        return self.gateway.config.policy

    @property
    def cancelling(self) -> bool:
        return self.turn is not None and self.turn.cancelling

    def require_agent(self) -> AgentConnection:
        if self.agent is None:
            raise self.gone or session_not_found(self.id)
        return self.agent

    def clients_by_preference(self) -> list[ClientConnection]:
        """Whoever prompted first, then the others in the order they came."""
        clients = [attachment.client for attachment in self.attachments]
        if self.turn is not None and self.turn.client in clients:
            clients.sort(key=lambda client: client is not self.turn.client)  # type: ignore[union-attr]
        return clients

    def open_services(self) -> LocalServices:
        return self.gateway.services.open([self.workspace, self.cwd, *self.additional_directories], self.cwd)

    # -- from the client

    def prompt(self, client: ClientConnection, request: Request) -> None:
        if self.turn is not None:
            raise invalid_request("A prompt is already in flight in this session", "prompt_in_flight")
        agent = self.require_agent()
        params = message.members(request.params)
        limit = self.gateway.config.limits.max_prompt_bytes
        blocks = check_prompt(params, agent.capabilities, self.agent_name, limit)
        self._check_load()
        turn = Turn(self, client, request)
        self.turn = turn
        self._muted = False
        turn.start(prompt_params(params, encode(self.agent_session_id), blocks))

    def cancel(self) -> None:
        if self.turn is not None:
            self.turn.cancel(self.gateway.config.limits.cancel_timeout)

    def forward(self, request: Request, params: bytes | None = None, method: str | None = None,
                result: Callable[[Reply], Reply] | None = None) -> None:  # fmt: skip
        """Pass a request on to the agent; its answer comes back in the order of the session's events."""
        agent = self.require_agent()
        self._check_load()
        raw = with_session(request.params if params is None else params, self.agent_session_id)

        def answer(reply: Reply) -> None:
            shown = self.reply_for_client(reply)
            if result is not None and shown.ok:
                shown = result(shown)
            self.after_events(lambda: request.answer(shown))

        call = agent.peer.request(method or request.method, raw, answer)
        request.on_cancel = lambda: agent.peer.cancel(call)

    def notify_agent(self, method: str, params: bytes) -> None:
        if self.agent is not None:
            self.agent.peer.notify(method, with_session(params, self.agent_session_id))

    def _check_load(self) -> None:
        agent = self.require_agent()
        if agent.overloaded():
            raise internal(f"The agent {self.agent_name} does not read its input", "agent_unavailable")

    # -- from the agent

    def agent_update(self, kind: str, line: bytes) -> None:
        """The message path: splice and publish (see updates.py for what is looked into)."""
        if self._muted:
            return
        if kind not in LOOKED_AT:
            self.feed.publish(self._rewriter.splice(line))
            return
        for shown in self._rewriter.rewrite(line):
            self.feed.publish(shown)

    def agent_request(self, request: Request) -> None:
        if request.method == questions.PERMISSION:
            self.questions.permission(request)
        elif request.method == questions.ELICITATION:
            self.questions.elicitation(request)
        elif request.method in services.METHODS:
            self.services.call(request)
        else:
            clients = self.clients_by_preference()
            if not clients:
                raise internal("No client is attached to this session", "no_client")
            self.forward_to_client(request, clients[0], self.for_client(request.params), lambda reply: reply)

    def agent_notification(self, method: str, params: bytes) -> None:
        """Anything but an update; for updates that are odd enough to come this way it is the same."""
        self.feed.publish(message.notification(method, self.for_client(params)))

    def forward_to_client(self, request: Request, client: ClientConnection, params: bytes,
                          result: Callable[[Reply], Reply]) -> None:  # fmt: skip
        """Ask a client on the agent's behalf, after everything that the agent said before."""

        def ask() -> None:
            call = client.peer.request(request.method, params, answered)
            self._forwarded[request] = (client, call)
            request.on_cancel = lambda: client.peer.cancel(call)

        def answered(reply: Reply) -> None:
            self._forwarded.pop(request, None)
            request.answer(result(reply))

        self.after_events(ask)

    def for_client(self, params: bytes) -> bytes:
        return with_session(params, self.id)

    def reply_for_client(self, reply: Reply) -> Reply:
        return reply_for_client(reply, self.agent_session_id, self.id)

    def session_result(self, reply: Reply, *, boolean: bool) -> bytes:
        """The result of `session/new`, `load`, `resume` or `fork` as the client sees it."""
        if reply.result == b"null":  # the documentation's answer to session/load (D-36)
            return message.EMPTY
        result = decode_object(reply.result)
        changed = self.options.read_result(result, boolean=boolean)
        if "sessionId" in result:
            result["sessionId"] = self.id
            changed = True
        return encode(result) if changed else reply.result

    # -- order, and the end of things

    def publish(self, update: JsonObject) -> None:
        """An update of the gateway's own making."""
        self.feed.publish(update_line(self.id, update))

    def after_events(self, action: Callable[[], None]) -> None:
        self.feed.then(action)

    def turn_ended(self, turn: Turn, reply: Reply) -> None:
        if self.turn is turn:
            self.turn = None
        self.questions.cancel_all("turn_end")
        self.after_events(lambda: turn.request.answer(reply))

    def late_answer(self) -> None:
        """The agent answered a prompt that was given up; from now on it speaks of what comes next."""
        self._muted = False

    def give_up_agent(self) -> None:
        """It ignores cancel: end it, or, where others share it, stop listening until the turn is over (G-093)."""
        if self.agent is None:
            return
        if self.shares_agent:
            self._muted = True
        else:
            self.gateway.spawn(self.agent.stop())

    def agent_gone(self, error: RpcError) -> None:
        """Nothing is left hanging when the agent ends (G-110)."""
        self.agent = None
        self.gone = error
        for closing in self.tools.fail_all():
            self.publish(closing)
        self.questions.drop_all()
        for client, call in self._forwarded.values():
            client.peer.cancel(call)
            client.peer.forget(call)
        self._forwarded.clear()
        self.services.release_terminals()
        if self.turn is not None:
            self.turn.fail(error)

    def _see(self, update: JsonObject) -> bool:
        """Follow what the session must know; True if the update was edited."""
        kind = update.get("sessionUpdate")
        if kind in ("tool_call", "tool_call_update"):
            self.tools.see(update)
            return self.services.tool_content_for_client(update)
        if kind == "config_option_update":
            boolean = all(each.client.capabilities.boolean_options for each in self.attachments)
            return self.options.read_update(update, boolean=boolean)
        return False
