"""A session of the gateway: its agent, its attachments, its turn, and the parts that each own a piece of its state."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from dragoman.config.model import AgentConfig
from dragoman.gateway.delivery import events
from dragoman.gateway.delivery.attachment import Attachment
from dragoman.gateway.delivery.journal_attachment import attachment_for, reads_journal
from dragoman.gateway.delivery.journal_state import JournalState
from dragoman.gateway.delivery.replay import ForeignTerminals
from dragoman.gateway.json_types import JsonObject, as_object, encode
from dragoman.gateway.ports.sandbox import Box
from dragoman.gateway.ports.services import LocalServices
from dragoman.gateway.ports.store import SessionChanges, StoreError
from dragoman.gateway.rewriting import quirks
from dragoman.gateway.rewriting.observer import Observer
from dragoman.gateway.rewriting.rewrite import reply_for_client, with_session
from dragoman.gateway.runtime import Runtime
from dragoman.gateway.session import endings, services
from dragoman.gateway.session.binding import Binding
from dragoman.gateway.session.entry import Entry
from dragoman.gateway.session.forwarding import Forwarding
from dragoman.gateway.session.open_tools import OpenTools
from dragoman.gateway.session.policy.session_policy import SessionPolicy
from dragoman.gateway.session.prompts.queue import CANCELLED, Prompts, QueueBeside
from dragoman.gateway.session.questions.question import ELICITATION, PERMISSION
from dragoman.gateway.session.questions.questions import Questions
from dragoman.gateway.session.recovery import Recovery
from dragoman.gateway.session.services import Services
from dragoman.gateway.session.settings.choices import Choices
from dragoman.gateway.session.settings.options import Options
from dragoman.gateway.session.setup import Setup
from dragoman.gateway.session.silence import SilenceWatch
from dragoman.gateway.session.states import IllegalTransition
from dragoman.gateway.session.stream import Stream
from dragoman.gateway.session.turn import Turn
from dragoman.gateway.session.updates import AgentUpdates
from dragoman.rpc.request import Reply, Request
from dragoman.wire import message
from dragoman.wire.errors import RpcError, internal

if TYPE_CHECKING:
    from dragoman.gateway.access.client import Client
    from dragoman.gateway.agent import AgentConnection

log = logging.getLogger(__name__)

TURN_KINDS = frozenset({"user_message_chunk", "session_info_update"})
"""Updates that report a turn to other clients: the prompt, and how the turn ended."""


class SessionHost(Runtime, QueueBeside):
    """The gateway as its sessions see it."""

    def changed(self, session: Session) -> None: ...

    def stopping(self, session: Session) -> None: ...

    def attached(self, session: Session) -> None: ...

    def detached(self, session: Session) -> None: ...

    def idle(self, session: Session) -> None: ...

    def has(self, session: Session) -> bool:
        raise NotImplementedError

    def session_broken(self, session: Session, error: IllegalTransition) -> None: ...

    def journal_state_changed(
        self, session: Session, state: JournalState, error: StoreError | None
    ) -> None: ...

    def journal_delayed(self, session: Session, error: StoreError | None) -> None: ...

    def claim_journal(self, session: Session) -> None: ...

    async def ready(self, session: Session, client: Client) -> None:
        """Wait until the session has an agent that takes requests."""

    async def prepare(self, session: Session, request: Request, by: str) -> None:
        """Ask about and run what prepares a new worktree, before the first prompt reaches the agent."""

    async def take_over(self, session: Session, client: Client) -> None:
        """Take the session over, or follow its new owner, if the connection to its owner is lost."""


class Session(Stream):
    """At most twenty attributes, which only this package assigns; each part writes its own fields."""

    def __init__(
        self,
        gateway: SessionHost,
        id: str,
        agent_name: str,
        cwd: str,
        workspace: str,
        setup: Setup | None = None,
    ) -> None:
        super().__init__(id)
        self.gateway = gateway
        self.agent_name = agent_name
        self.cwd = cwd
        self.workspace = workspace
        self.setup = setup or Setup()
        self.entry = Entry(self)
        self.binding = Binding(id, self.illegal, self.release)
        self.recovery = Recovery()
        observer = Observer(self)
        self.updates = AgentUpdates(self, observer.see, observer.mode_said)
        self.options = Options()
        self.choices = Choices(self, self.options, self.binding, self.updates)
        self.tools = OpenTools()
        self.questions = Questions(self)
        self.services = Services(self)
        self.forwarding = Forwarding(self)
        silent_after = gateway.config.sessions.silent_after
        self.silence = SilenceWatch(self, silent_after, self._agent_works, self.questions.__len__)
        self.prompts: Prompts[Turn] = Prompts(id, self.illegal)

    # -- agent

    def bind(self, agent: AgentConnection, agent_session_id: str) -> None:
        """This agent, or the owner in its place, answers for the session from now on."""
        self.binding.bind(agent, agent_session_id)
        self.updates.bound(agent.rewriter(agent_session_id, self.id, self.updates.see))
        agent.sessions[agent_session_id] = self
        self.services.checkpoints.prepare()
        if self.journal is not None and self.journal.state is JournalState.WAITING:
            self.binding.pause("waiting", True)
        if agent.box is not None:
            self.entry.save(SessionChanges(sandbox=agent.box.name))
            self.stay_in_box(agent.box)

    def unbind(self) -> None:
        """The agent did not take the session, or is let go."""
        self.updates.publish()
        self.binding.lose()

    def illegal(self, error: IllegalTransition) -> None:
        """A bug of ours: this session ends, other sessions go on."""
        self.gateway.session_broken(self, error)

    @property
    def agent(self) -> AgentConnection | None:
        return self.binding.agent

    @property
    def agent_session_id(self) -> str:
        return self.binding.agent_session_id

    def close(self) -> None:
        """It leaves the memory of this process; a restart of its agent is given up, and its turn ends."""
        self.binding.close()
        self.recovery.give_up()
        self.prompts.cancel_all()
        if self.turn is not None:
            self.turn.settle(CANCELLED)

    @property
    def turn(self) -> Turn | None:
        """The turn that runs."""
        return self.prompts.turn

    @property
    def closed(self) -> bool:
        """Closed, deleted or unloaded: what is under way for it must give up."""
        return self.binding.closed

    @property
    def parked(self) -> bool:
        return self.binding.parked

    @property
    def owned_elsewhere(self) -> bool:
        """Another process owns it, or owned it until it ended."""
        return self.binding.owned_elsewhere

    @property
    def orphaned(self) -> bool:
        """The process that owned it is gone, or not reached yet."""
        return self.binding.orphaned

    def stay_in_box(self, box: Box) -> None:
        """Save the sandbox of the command line, so that the session runs in it in a process without that option too.

        Called before the session is added to the directory, and again with each agent.
        """
        chosen = self.gateway.boxes.chosen if self.gateway.boxes is not None else None
        if chosen is not None and box.apart and self.entry.sandbox is None:
            self.entry.save_extra(sandbox=chosen)

    # -- attachments

    def attach(self, client: Client) -> Attachment:
        known = client.attachments.get(self.id)
        if known is not None:
            return known
        attachment = attachment_for(client, self)
        attachment.position = self.feed.delivered
        self.feed.add(attachment)
        client.attachments[self.id] = attachment
        self.gateway.attached(self)
        self.changed()
        return attachment

    def detach(self, client: Client) -> None:
        attachment = client.attachments.pop(self.id, None)
        if attachment is None:
            return
        self.feed.remove(attachment)
        attachment.close()
        self.questions.client_gone(client)
        self.services.client_gone(client)
        if self.agent is not None:
            client.release(self.agent)
        self.gateway.detached(self)
        self.changed()

    def reattach(self, client: Client) -> Attachment:
        """Replace the attachment of a client that loads the session again; it is sent open questions again."""
        known = client.attachments.pop(self.id, None)
        if known is not None:
            self.feed.remove(known)
            known.close()
            self.questions.client_gone(client)
        return self.attach(client)

    def foreign_terminals(self, client: Client) -> ForeignTerminals:
        return self.services.foreign_terminals(client)

    async def take_over(self, client: Client) -> None:
        await self.gateway.take_over(self, client)

    def changed(self) -> None:
        """Report a change of state, title or attachments to the watchers, which show lists of sessions."""
        self.gateway.changed(self)

    def rename(self, title: str) -> None:
        """Set the title that the user chose; titles from the agent do not replace it any more."""
        self.entry.rename(title)
        self.changed()

    @property
    def shares_agent(self) -> bool:
        return self.agent is not None and self.agent.shared

    @property
    def agent_config(self) -> AgentConfig:
        return self.gateway.agent_config(self.agent_name)

    @property
    def policy(self) -> SessionPolicy:
        return SessionPolicy(self)

    @property
    def cancelling(self) -> bool:
        return self.turn is not None and self.turn.cancelling

    @property
    def state(self) -> str:
        """The session's state for lists and records."""
        if len(self.questions):
            return "waiting_for_permission"
        if self.turn is not None:
            return "silent" if self.silence.silent else "working"
        if self.parked:
            return "parked"
        if self.agent is None:
            return "agent_dead"
        return "context_lost" if self.recovery.context_lost else "idle"

    @property
    def follows(self) -> bool:
        """Whether the session is mirrored from its owner, which also sends back what clients here do, in order."""
        return self.binding.follows

    def clients_by_preference(self) -> list[Client]:
        """Clients that may be asked: the one that sent the prompt first, then the others in the order they attached."""
        clients = [each.client for each in self.attachments if each.client.may_control]
        author = self.turn.client if self.turn is not None else None
        return sorted(clients, key=lambda client: client is not author)

    def open_services(self) -> LocalServices:
        folders = [self.workspace, self.cwd, *self.setup.directories]
        box = self.agent.box if self.agent is not None else None
        return self.gateway.services.open(folders, self.cwd, box)

    # -- from the client

    def cancel(self) -> None:
        """Cancel the turn, whichever client began it; a turn that the owner runs is cancelled there."""
        self.gateway.stopping(self)
        self.prompts.cancel_all()
        if self.turn is not None:
            self.turn.cancel(self.gateway.config.limits.cancel_timeout)
        elif self.follows:
            self.notify_agent("session/cancel", encode({"sessionId": self.id}))

    def _agent_works(self) -> bool:
        """Whether a prompt is at the agent."""
        return self.turn is not None and self.turn.call is not None

    @property
    def can_cancel(self) -> bool:
        """Whether a turn runs here, or the owner, which may run one, can be reached."""
        return self.turn is not None or self.follows

    def notify_agent(self, method: str, params: bytes) -> None:
        if self.agent is not None:
            self.agent.peer.notify(method, with_session(params, self.agent_session_id))

    def check_load(self) -> None:
        """Raise if the agent does not read its input, so that other sessions go on (G-084)."""
        if self.binding.require().overloaded():
            raise internal(f"The agent {self.agent_name} does not read its input", "agent_unavailable")

    # -- from the agent

    def own_update(self, kind: str, line: bytes) -> None:
        """An update from the owner about something that a client of this process did."""
        author = self.turn.client if self.turn is not None else self.prompts.forwarded_author
        if kind in TURN_KINDS and author is not None:
            self.feed.publish(events.tag_of(kind), line, author)
        else:
            self.updates.receive(kind, line)

    def agent_request(self, request: Request) -> None:
        if request.method == PERMISSION:
            self.questions.permission(request)
        elif request.method == ELICITATION:
            self.questions.elicitation(request)
        elif request.method in services.METHODS:
            self.services.call(request)
        else:
            clients = self.clients_by_preference()
            if not clients:
                raise internal("No client is attached to this session", "no_client")
            self.forwarding.to_client(request, clients[0], self.for_client(request.params))

    def agent_gone(self, error: RpcError, *, expected: bool) -> None:
        endings.agent_gone(self, error, expected=expected)

    def prompted(self, call: object) -> bool:
        """Whether `call` is the prompt at the agent, and its client reads the journal."""
        turn = self.turn
        return turn is not None and call is not None and turn.call == call and reads_journal(turn.client)

    def agent_notification(self, method: str, params: bytes) -> None:
        """Publish any other notification, or an update that is too unusual for the message path."""
        if not self.updates.discarding:
            self.feed.publish(events.STATE, message.notification(method, self.for_client(params)))

    def for_client(self, params: bytes) -> bytes:
        return with_session(params, self.id)

    def reply_for_client(self, reply: Reply) -> Reply:
        return quirks.with_rpc_code(reply_for_client(reply, self.agent_session_id, self.id))

    def result_for(self, client: Client, result: JsonObject | None = None) -> JsonObject:
        """A session result, by default the last one, adapted to this client's capabilities."""
        told = self.options.result if result is None else result
        capabilities = client.capabilities
        return self.options.for_client(told, boolean=capabilities.boolean_options, models=capabilities.models)

    def tell_offer(self) -> None:
        """Journal the modes and options that the agent offers, for readers of the journal without an agent."""
        offer = self.options.take_offer()
        if offer:
            self.record("offered", **offer)

    # -- the journal

    def journal_state_changed(self, state: JournalState, error: StoreError | None) -> None:
        self.gateway.journal_state_changed(self, state, error)

    def journal_delayed(self, error: StoreError | None) -> None:
        self.gateway.journal_delayed(self, error)

    def journal_congested(self, congested: bool) -> None:
        """Pause this session's agent alone."""
        self.binding.pause("congested", congested)

    def claim_journal(self) -> None:
        self.gateway.claim_journal(self)


def result_line(session_id: str | None, result: JsonObject, facts: JsonObject) -> bytes:
    """A session result with the gateway's own facts beside the agent's."""
    meta = as_object(result.get("_meta"))
    if facts:
        meta["dragoman"] = {**as_object(meta.get("dragoman")), **facts}
        result["_meta"] = meta
    return encode({"sessionId": session_id, **result} if session_id is not None else result)
