"""A session of the gateway: its agent, its attachments, its turn, its journal."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Collection
from functools import partial
from typing import TYPE_CHECKING

from msgspec import UNSET, UnsetType, structs

from dragoman.config.model import AgentConfig, PolicyConfig
from dragoman.gateway.delivery import events
from dragoman.gateway.delivery.attachment import Attachment
from dragoman.gateway.delivery.feed import DirectFeed, Feed
from dragoman.gateway.delivery.journal_attachment import attachment_for
from dragoman.gateway.delivery.journal_feed import JournalFeed
from dragoman.gateway.delivery.journal_state import JournalState, is_taken
from dragoman.gateway.json_types import JsonObject, as_object, decode_object, encode
from dragoman.gateway.ports.sandbox import Box
from dragoman.gateway.ports.services import LocalServices
from dragoman.gateway.ports.store import SessionChanges, StoreError
from dragoman.gateway.rewriting import dialects, quirks
from dragoman.gateway.rewriting.observer import TOOL_KINDS, Observer
from dragoman.gateway.rewriting.rewrite import reply_for_client, with_session
from dragoman.gateway.rewriting.updates import HISTORY_KINDS, LOOKED_AT, UpdateRewriter, update_line
from dragoman.gateway.session import services
from dragoman.gateway.session.forwarding import Forwarding
from dragoman.gateway.session.open_tools import OpenTools
from dragoman.gateway.session.questions.question import ELICITATION, PERMISSION
from dragoman.gateway.session.questions.questions import Questions
from dragoman.gateway.session.services import Services
from dragoman.gateway.session.settings.choices import Choices
from dragoman.gateway.session.settings.options import UPDATE as OPTION_UPDATE
from dragoman.gateway.session.settings.options import Options
from dragoman.gateway.session.silence import SilenceWatch
from dragoman.gateway.session.states import SessionEvent, SessionState, session_life
from dragoman.gateway.session.turn import Turn
from dragoman.rpc.request import Reply, Request
from dragoman.wire import limits, message
from dragoman.wire.errors import RpcError, internal, invalid_request, session_not_found

if TYPE_CHECKING:
    from dragoman.gateway.agent import AgentConnection
    from dragoman.gateway.client import ClientConnection
    from dragoman.gateway.gateway import Gateway
    from dragoman.gateway.lifecycle.adoption import Adoption

log = logging.getLogger(__name__)

REMEMBERED = frozenset({"available_commands_update", "config_option_update", "current_mode_update"})
"""Kinds of updates of which a client that attaches later is sent the last one (G-163)."""
LATEST = frozenset({*REMEMBERED, "usage_update", "plan"})
"""Kinds of which each update replaces the one before."""
TURN_KINDS = frozenset({"user_message_chunk", "session_info_update"})
"""Updates that report a turn to other clients: the prompt, and how the turn ended."""
OFFERED = ("modes", "configOptions")


class Session:
    def __init__(self, gateway: Gateway, id: str, agent_name: str, cwd: str, workspace: str) -> None:
        self.gateway = gateway
        self.id = id
        self.agent_name = agent_name
        self.cwd = cwd
        self.workspace = workspace
        self.additional_directories: list[str] = []
        self.token_name = ""
        """Name of the token that made the session live here, for quotas; not the process that holds its lease."""
        self.setup: JsonObject = {}
        """Params from the session's creation (MCP servers, folders), used again for a restarted agent."""
        self.title: str | None = None
        self.agent: AgentConnection | None = None
        self.agent_session_id = ""
        self._life = session_life(id)
        self.feed: Feed = DirectFeed(id)
        self.options = Options()
        self.choices = Choices(self)
        self.tools = OpenTools()
        self.corrections = quirks.Corrections()
        self.questions = Questions(self)
        self.services = Services(self)
        self.forwarding = Forwarding(self)
        self.silence = SilenceWatch(self)
        self.turn: Turn | None = None
        self.gone: RpcError | None = None
        """Why the session has no agent any more."""
        self.context_lost = False
        """The current agent does not have the earlier conversation."""
        self.loss_untold = False
        self.recap: bytes | None = None
        """The recap, sent to a restarted agent with the next prompt."""
        self.attaching = 0
        """Number of clients that are attaching but not attached yet."""
        self.restarting: asyncio.Task[JsonObject] | None = None
        self.adoption: Adoption | None = None
        """Set while the agent's own replay is journaled, at the first load of a session that only the agent knew."""
        self.settling: asyncio.Task[None] | None = None
        """Task to wait for before the next request to the agent, which may still run a command or is just starting."""
        self.has_terminals = False
        self.pruned = False
        """Retention removed the beginning of the journal."""
        self.last_result: JsonObject = {}
        """The session result with modes and options, for clients that attach later."""
        self.current: dict[str, bytes] = {}
        self.last_used = time.monotonic()
        self.crashes = 0
        """Number of crashes of the agent since the last turn that ended well."""
        self.failed = False
        """The last turn ended with an error."""
        self.stopped = False
        """The last turn was cancelled."""
        self.extra: JsonObject = {}
        """Further facts that the directory stores about the session."""
        self.discarded: deque[bytes] = deque()
        """The last lines of a replay that was not sent to clients, to compare it with the journal."""
        self._discarded_bytes = 0
        self._held: Callable[[str, bytes], None] | None = None
        """If set, called with the agent's updates instead of publishing them."""
        self._offered: JsonObject = {}
        self._owed: SessionChanges | None = None
        """Changes that could not be written to the directory yet."""
        self._waiting_agent: AgentConnection | None = None
        self._congested_agent: AgentConnection | None = None
        self._observer = Observer(self)
        self._rewriter = UpdateRewriter("", id, self._observer.see)

    # -- agent and attachments

    def bind(self, agent: AgentConnection, agent_session_id: str) -> None:
        """This agent, or the owner in its place, answers for the session from now on."""
        self._life.send(SessionEvent.FOLLOWED if agent.is_owner else SessionEvent.BOUND)
        self.agent = agent
        self.agent_session_id = agent_session_id
        self.gone = None
        self._held = None
        self._rewriter = agent.rewriter(agent_session_id, self.id, self._observer.see)
        agent.sessions[agent_session_id] = self
        if self.journal is not None and self.journal.state is JournalState.WAITING:
            self.hold_agent(True)
        if agent.box is not None:
            self.save(SessionChanges(sandbox=agent.box.name))
            self.stay_in_box(agent.box)

    def lose_agent(self, reason: RpcError | None = None) -> None:
        """No agent answers for the session any more; `reason` is told to clients that need one."""
        self._life.send(SessionEvent.LOST)
        self.agent = None
        self.gone = reason or self.gone

    def park(self, reason: RpcError | None = None) -> None:
        """It goes on without an agent, on purpose."""
        self._life.send(SessionEvent.PARKED)
        self.agent = None
        self.gone = reason or self.gone

    def held_elsewhere(self) -> None:
        """Another process owns it: `bind` with a connection to that process comes next."""
        self._life.send(SessionEvent.HELD)

    def taken(self) -> None:
        """This process holds the lease."""
        self._life.send(SessionEvent.TAKEN)

    @property
    def parked(self) -> bool:
        return self._life.state is SessionState.PARKED

    @property
    def owned_elsewhere(self) -> bool:
        """Another process owns it, or owned it until it ended."""
        return self._life.state in (SessionState.FOLLOWING, SessionState.ORPHANED)

    @property
    def orphaned(self) -> bool:
        """The process that owned it is gone, or not reached yet."""
        return self._life.state is SessionState.ORPHANED

    def stay_in_box(self, box: Box) -> None:
        """Save the sandbox of the command line, so that the session runs in it in a process without that option too.

        Called before the session is added to the directory, and again with each agent.
        """
        chosen = self.gateway.boxes.chosen if self.gateway.boxes is not None else None
        if chosen is not None and box.apart and self.sandbox is None:
            self.save_extra(sandbox=chosen)

    def discard_updates(self, muted: bool) -> None:
        """Begin or end to discard the agent's updates: a replay that clients have already."""
        self._held = self._discard if muted else None
        if muted:
            self.discarded.clear()
            self._discarded_bytes = 0

    def attach(self, client: ClientConnection) -> Attachment:
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

    def detach(self, client: ClientConnection) -> None:
        attachment = client.attachments.pop(self.id, None)
        if attachment is None:
            return
        self.feed.remove(attachment)
        attachment.close()
        self.questions.client_gone(client)
        self.services.client_gone(client)
        if self.agent is not None:
            self.agent.release(client)
        self.gateway.left(self)
        self.changed()

    def reattach(self, client: ClientConnection) -> Attachment:
        """Attach a client anew that loads the session again: open questions are sent again, its terminals go on."""
        known = client.attachments.pop(self.id, None)
        if known is not None:
            self.feed.remove(known)
            known.close()
            self.questions.client_gone(client)
        return self.attach(client)

    def changed(self) -> None:
        """Report a change of state, title or attachments to the watchers, which show lists of sessions."""
        self.gateway.changed(self)

    @property
    def attachments(self) -> list[Attachment]:
        return self.feed.attachments

    @property
    def mirrored(self) -> bool:
        """Whether a client shows the agent's own commands in its terminals."""
        return any(each.mirror is not None for each in self.feed.attachments)

    @property
    def journal(self) -> JournalFeed | None:
        return self.feed if isinstance(self.feed, JournalFeed) else None

    @property
    def shares_agent(self) -> bool:
        return self.agent is not None and self.agent.shared

    @property
    def agent_config(self) -> AgentConfig:
        return self.gateway.agent_config(self.agent_name)

    @property
    def policy(self) -> PolicyConfig:
        return self.gateway.policy_for(self.workspace)

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
        return "context_lost" if self.context_lost else "idle"

    @property
    def follows(self) -> bool:
        """Whether the session is mirrored from its owner, which also sends back what clients here do, in order."""
        return self.agent is not None and self.agent.is_owner

    def require_agent(self) -> AgentConnection:
        if self.agent is None:
            raise self.gone or session_not_found(self.id)
        return self.agent

    def clients_by_preference(self) -> list[ClientConnection]:
        """Clients that may be asked: the one that sent the prompt first, then the others in the order they attached."""
        clients = [each.client for each in self.attachments if each.client.may_control]
        author = self.turn.client if self.turn is not None else None
        return sorted(clients, key=lambda client: client is not author)

    def open_services(self) -> LocalServices:
        folders = [self.workspace, self.cwd, *self.additional_directories]
        box = self.agent.box if self.agent is not None else None
        return self.gateway.services.open(folders, self.cwd, box)

    # -- from the client

    def prompt(self, client: ClientConnection, request: Request) -> None:
        """Start a turn, one at a time (G-090); an agent that is gone or parked is restarted first."""
        if self.turn is not None:
            raise invalid_request("A prompt is already in flight in this session", "prompt_in_flight")
        turn = Turn(self, client, request)
        if self.agent is not None and self.settling is None:
            turn.check()
            self.turn = turn
            turn.start()
        else:
            self.turn = turn
            self.gateway.spawn(turn.restart_and_start())
        self.changed()

    def cancel(self) -> None:
        """Cancel the turn, whichever client began it; a turn that the owner runs is cancelled there."""
        self.gateway.stopping(self)
        if self.turn is not None:
            self.turn.cancel(self.gateway.config.limits.cancel_timeout)
        elif self.follows:
            self.notify_agent("session/cancel", encode({"sessionId": self.id}))

    @property
    def can_cancel(self) -> bool:
        """Whether a turn runs here, or the owner, which may run one, can be reached."""
        return self.turn is not None or self.follows

    def notify_agent(self, method: str, params: bytes) -> None:
        if self.agent is not None:
            self.agent.peer.notify(method, with_session(params, self.agent_session_id))

    def check_load(self) -> None:
        """Raise if the agent does not read its input, so that other sessions go on (G-084)."""
        if self.require_agent().overloaded():
            raise internal(f"The agent {self.agent_name} does not read its input", "agent_unavailable")

    # -- from the agent

    def agent_update(self, kind: str, line: bytes, size: int = -1) -> None:
        """The message path: splice and publish (updates.py says which kinds are decoded, and what `size` is)."""
        if self._held is not None:
            self._held(kind, line)
            return
        rewriter = self._rewriter
        mode_at = rewriter.cut + quirks.MODE_AT
        if line[mode_at : mode_at + 1] == b"[" and self._says_mode(line):
            return
        if kind not in LOOKED_AT:
            self.feed.publish(events.tag_of(kind), rewriter.splice(line, size))
            return
        kind = dialects.RENAMED_KINDS.get(kind, kind)
        for shown in rewriter.rewrite(line, size):
            if kind in LATEST:
                self.current[kind] = shown
            self.feed.publish(events.tag_of(kind), shown, varied=self._is_varied(kind, shown))

    def _says_mode(self, line: bytes) -> bool:
        return line.startswith(quirks.MODE_TEXT, self._rewriter.cut) and self._observer.mode_said(line)

    def own_update(self, kind: str, line: bytes) -> None:
        """An update from the owner about something that a client of this process did."""
        if kind in TURN_KINDS and self.turn is not None:
            self.feed.publish(events.tag_of(kind), line, self.turn.client)
        else:
            self.agent_update(kind, line)

    def tell_first(self, tell: Callable[[], None]) -> None:
        """Call `tell` at the agent's next update, at no cost for the updates after it."""

        def first(kind: str, line: bytes) -> None:
            self._held = None
            tell()
            self.agent_update(kind, line)

        self._held = first

    def forget_first(self) -> None:
        if self._held != self._discard:
            self._held = None

    def _discard(self, kind: str, line: bytes) -> None:
        """Discard an update of a replay, but remember its last lines and the agent's current commands and options."""
        if kind in HISTORY_KINDS:
            self.discarded.append(line)
            self._discarded_bytes += len(line)
            while len(self.discarded) > 1 and (
                len(self.discarded) > limits.DISCARDED_EVENTS
                or self._discarded_bytes > limits.DISCARDED_BYTES
            ):
                self._discarded_bytes -= len(self.discarded.popleft())
        kind = dialects.RENAMED_KINDS.get(kind, kind)
        if kind in REMEMBERED:
            self.current.update((kind, shown) for shown in self._rewriter.rewrite(line))

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

    def agent_notification(self, method: str, params: bytes) -> None:
        """Publish any other notification, or an update that is too unusual for the message path."""
        if self._held != self._discard:
            self.feed.publish(events.STATE, message.notification(method, self.for_client(params)))

    def for_client(self, params: bytes) -> bytes:
        return with_session(params, self.id)

    def reply_for_client(self, reply: Reply) -> Reply:
        return quirks.with_rpc_code(reply_for_client(reply, self.agent_session_id, self.id))

    def session_result(self, reply: Reply) -> JsonObject:
        """The result of `session/new`, `load`, `resume` or `fork`, without the session id, for `result_for`."""
        # null is the documentation's answer to session/load (D-36)
        result = {} if reply.result == b"null" else decode_object(reply.result)
        self.options.read_result(result)
        result.pop("sessionId", None)
        self.last_result = result
        return dict(result)

    def result_for(self, client: ClientConnection, result: JsonObject | None = None) -> JsonObject:
        """A session result, by default the last one, adapted to this client's capabilities."""
        told = self.last_result if result is None else result
        capabilities = client.capabilities
        return self.options.for_client(told, boolean=capabilities.boolean_options, models=capabilities.models)

    def tell_offer(self) -> None:
        """Journal the modes and options that the agent offers, for readers of the journal without an agent."""
        offer = {name: self.last_result[name] for name in OFFERED if self.last_result.get(name)}
        if offer and offer != self._offered:
            self._offered = offer
            self.record("offered", **offer)

    # -- order

    def publish(self, update: JsonObject, author: ClientConnection | None = None) -> None:
        """Publish an update that the gateway made."""
        kind, line = str(update.get("sessionUpdate")), update_line(self.id, update)
        self.feed.publish(events.tag_of(kind), line, author, varied=self._is_varied(kind, line))

    def _is_varied(self, kind: str, line: bytes) -> bool:
        """Whether clients get different lines: a terminal belongs to one client, some do not know boolean options."""
        if kind in TOOL_KINDS:
            return b'"terminalId"' in line or self.mirrored
        return kind == OPTION_UPDATE

    def record(self, kind: str, **facts: object) -> None:
        self.feed.record(events.record(kind, **facts))

    def after_events(self, action: Callable[[], None], client: ClientConnection | None = None) -> None:
        """Run `action` when everything published so far is sent; with `client`, when it is sent to that client."""

        def hand_over() -> None:
            attachment = client.attachments.get(self.id) if client is not None else None
            if attachment is None or attachment.is_current:
                action()
            else:
                attachment.after(self.feed.delivered, partial(attachment.after_terminals, action))

        self.feed.then(hand_over)

    async def settled(self) -> None:
        """Wait until everything published so far is stored and sent."""
        done = asyncio.Event()
        self.feed.then(done.set)
        await done.wait()

    def terminals_used(self) -> None:
        """Note that replays of this session have terminal references to replace."""
        if not self.has_terminals:
            self.has_terminals = True
            self.save_extra(terminals=True)

    def save(self, changes: SessionChanges) -> None:
        """Write changes to the directory, in order with the journal; changes that fail are written later."""
        journal = self.journal
        if journal is None:
            return
        if self._owed is not None:
            changes, self._owed = _merged(self._owed, changes), None
        if journal.state in (JournalState.STORED, JournalState.WAITING):
            journal.store.update(self.id, journal.epoch, changes, partial(self._saved, changes))
        elif journal.state is JournalState.UNKEPT:
            self._owed = changes

    def touch(self, state: str, title: str | UnsetType | None = UNSET) -> None:
        """Write the time of use and the state to the directory."""
        journal = self.journal
        if journal is None:
            return
        if title is UNSET and self._owed is None and journal.state is JournalState.STORED:
            journal.store.touch(self.id, journal.epoch, state, self._touched)
        else:
            self.save(SessionChanges(updated_at=events.now(), state=state, title=title))

    def _touched(self, error: StoreError | None) -> None:
        if error is not None:
            self._saved(SessionChanges(updated_at=events.now()), error)

    @property
    def sandbox(self) -> str | None:
        """The sandbox for all agents of this session: requested at its creation, or set on the command line."""
        name = self.extra.get("sandbox")
        return name if isinstance(name, str) else None

    def save_extra(self, **facts: object) -> None:
        self.extra = {**self.extra, **facts}
        self.save(SessionChanges(extra=self.extra))

    def rename(self, title: str) -> None:
        """Set the title that the user chose; titles from the agent do not replace it any more."""
        self.title = title
        self.save_extra(named=True)
        self.save(SessionChanges(title=title))
        self.publish({"sessionUpdate": "session_info_update", "title": title})
        self.changed()

    def notice(self, title: str, severity: str = "warning") -> None:
        """Send a notice that users must not miss to all clients: as text to a client that does not know notices."""
        log.warning(title, extra={"session": self.id})
        self.record("notice", title=title, severity=severity)
        for attachment in self.attachments:
            if not attachment.reads_journal:  # journal readers get the record
                line = self.notice_line(attachment.client, title, severity)
                self.after_events(partial(attachment.send, line), attachment.client)

    def notice_line(self, client: ClientConnection, title: str, severity: str = "warning") -> bytes:
        """A notice for one client alone, which is not journaled."""
        if client.capabilities.notices:
            return update_line(self.id, {"sessionUpdate": "notice", "severity": severity, "title": title})
        text = {"type": "text", "text": f"\n> **Dragoman:** {title}\n\n"}
        meta = {"dragoman": {"notice": severity}}
        return update_line(self.id, {"sessionUpdate": "agent_message_chunk", "content": text, "_meta": meta})

    # -- the end of things

    def late_answer(self) -> None:
        """Publish updates again: a turn begins, or the agent answered a prompt that was given up."""
        self._held = None

    def _saved(self, changes: SessionChanges, error: StoreError | None) -> None:
        if error is None:
            return
        log.error("session directory is not up to date: %s", error, extra={"session": self.id})
        if not is_taken(error):
            self._owed = _merged(changes, self._owed) if self._owed is not None else changes

    # -- the journal

    def journal_state_changed(self, state: JournalState, error: StoreError | None) -> None:
        self.gateway.journal_state_changed(self, state, error)

    def journal_delayed(self, error: StoreError | None) -> None:
        self.gateway.journal_delayed(self, error)

    def journal_congested(self, congested: bool) -> None:
        """Pause this session's agent alone, or release the agent that was paused, even if it was replaced since."""
        if self._congested_agent is not None:
            self._congested_agent.release(self.feed)
        self._congested_agent = self.agent if congested else None
        if self._congested_agent is not None:
            self._congested_agent.hold(self.feed)

    def claim_journal(self) -> None:
        self.gateway.claim_journal(self)

    def hold_agent(self, hold: bool) -> None:
        """Pause the agent while events wait to be stored, so that they do not fill memory."""
        if self._waiting_agent is not None:
            self._waiting_agent.release(self)
        self._waiting_agent = self.agent if hold else None
        if self._waiting_agent is not None:
            self._waiting_agent.hold(self)


async def settle(sessions: Collection[Session], seconds: float) -> set[Session]:
    """Wait until everything published so far is stored and sent; returns the sessions that were ready in time."""
    waits = {asyncio.ensure_future(session.settled()): session for session in sessions}
    if not waits:
        return set()
    done, late = await asyncio.wait(waits, timeout=seconds)
    for wait in late:
        wait.cancel()
    return {waits[wait] for wait in done}


def _merged(older: SessionChanges, newer: SessionChanges) -> SessionChanges:
    names = SessionChanges.__struct_fields__
    fields = {name: getattr(newer, name) for name in names if getattr(newer, name) is not UNSET}
    return structs.replace(older, **fields)


def result_line(session_id: str | None, result: JsonObject, facts: JsonObject) -> bytes:
    """A session result with the gateway's own facts beside the agent's."""
    meta = as_object(result.get("_meta"))
    if facts:
        meta["dragoman"] = {**as_object(meta.get("dragoman")), **facts}
        result["_meta"] = meta
    return encode({"sessionId": session_id, **result} if session_id is not None else result)
