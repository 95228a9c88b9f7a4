"""A conversation that the gateway owns: its agent, its attachments, its turn, its journal."""

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
from dragoman.gateway.session import questions, services
from dragoman.gateway.session.choices import Choices
from dragoman.gateway.session.forwarding import Forwarding
from dragoman.gateway.session.open_tools import OpenTools
from dragoman.gateway.session.options import UPDATE as OPTION_UPDATE
from dragoman.gateway.session.options import Options
from dragoman.gateway.session.questions import Questions
from dragoman.gateway.session.services import Services
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
"""State that a client who comes later is told as it stands (G-163)."""
LATEST = frozenset({*REMEMBERED, "usage_update", "plan"})
"""Kinds of which the last one is the whole truth."""
TURN_KINDS = frozenset({"user_message_chunk", "session_info_update"})
"""How others are told of a turn: what was asked, and how it ended."""
OFFERED = ("modes", "configOptions")


class Session:
    def __init__(self, gateway: Gateway, id: str, agent_name: str, cwd: str, workspace: str) -> None:
        self.gateway = gateway
        self.id = id
        self.agent_name = agent_name
        self.cwd = cwd
        self.workspace = workspace
        self.additional_directories: list[str] = []
        self.owner = ""
        """The token that made it live here, for quotas."""
        self.setup: JsonObject = {}
        """What the client asked for at the start (MCP servers, folders), to ask a new process for the same."""
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
        """Why the agent of this session is not there any more."""
        self.context_lost = False
        """The agent that runs now does not remember what was said before."""
        self.loss_untold = False
        self.seed: bytes | None = None
        """The conversation so far, told to a new agent with the next prompt."""
        self.comers = 0
        """How many are on the way in, and not attached yet."""
        self.reviving: asyncio.Task[JsonObject] | None = None
        self.adoption: Adoption | None = None
        """Its agent's own replay is being journaled: it is loaded for the first time."""
        self.settling: asyncio.Task[None] | None = None
        """What must be over before more is asked of the agent, whose last command may still run or which is new."""
        self.has_terminals = False
        self.pruned = False
        """Retention removed the beginning of its journal."""
        self.last_result: JsonObject = {}
        """Modes and options as the agent gave them, for clients that come later."""
        self.current: dict[str, bytes] = {}
        self.last_used = time.monotonic()
        self.crashes = 0
        """Deaths of the agent since the last turn that ended well."""
        self.failed = False
        """The last turn ended with an error."""
        self.stopped = False
        """The last turn was cancelled."""
        self.extra: JsonObject = {}
        """What else the directory keeps of it."""
        self.swallowed: deque[bytes] = deque()
        """The end of a replay that was not shown, to compare it with the journal."""
        self._swallowed_bytes = 0
        self._held: Callable[[str, bytes], None] | None = None
        """Gets the agent's next updates instead of everybody."""
        self._offered: JsonObject = {}
        self._owed: SessionChanges | None = None
        """What the directory should know and could not be told yet."""
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
    def remote(self) -> bool:
        """Another process owns it, or owned it until it ended."""
        return self._life.state in (SessionState.FOLLOWING, SessionState.ORPHANED)

    @property
    def orphaned(self) -> bool:
        """The process that owned it is gone, or not reached yet."""
        return self._life.state is SessionState.ORPHANED

    def stay_in_box(self, box: Box) -> None:
        """A session that the command line put into a box stays there, also in a process without that option.

        Called before the session is added to the directory, and again with each agent.
        """
        chosen = self.gateway.boxes.chosen if self.gateway.boxes is not None else None
        if chosen is not None and box.apart and self.sandbox is None:
            self.save_extra(sandbox=chosen)

    def mute(self, muted: bool) -> None:
        """Swallow what the agent says: a replay that is not to be seen twice."""
        self._held = self._swallow if muted else None
        if muted:
            self.swallowed.clear()
            self._swallowed_bytes = 0

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
        """A client that loads again starts again, and is asked again; what runs at its side goes on."""
        known = client.attachments.pop(self.id, None)
        if known is not None:
            self.feed.remove(known)
            known.close()
            self.questions.client_gone(client)
        return self.attach(client)

    def changed(self) -> None:
        """Its state, title or company is another: whoever shows a list of sessions wants to know."""
        self.gateway.changed(self)

    @property
    def attachments(self) -> list[Attachment]:
        return self.feed.attachments

    @property
    def mirrored(self) -> bool:
        """A client shows the agent's own commands in terminals of its own."""
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
        """In one word, honestly, what is going on."""
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
        """The process that has it tells everybody here what they do, in its place in the order."""
        return self.agent is not None and self.agent.is_owner

    def require_agent(self) -> AgentConnection:
        if self.agent is None:
            raise self.gone or session_not_found(self.id)
        return self.agent

    def clients_by_preference(self) -> list[ClientConnection]:
        """Who may be asked: whoever prompted first, then the others in the order they came."""
        clients = [each.client for each in self.attachments if each.client.may_control]
        author = self.turn.client if self.turn is not None else None
        return sorted(clients, key=lambda client: client is not author)

    def open_services(self) -> LocalServices:
        folders = [self.workspace, self.cwd, *self.additional_directories]
        box = self.agent.box if self.agent is not None else None
        return self.gateway.services.open(folders, self.cwd, box)

    # -- from the client

    def prompt(self, client: ClientConnection, request: Request) -> None:
        """One at a time (G-090); an agent that is gone or parked is brought back first."""
        if self.turn is not None:
            raise invalid_request("A prompt is already in flight in this session", "prompt_in_flight")
        turn = Turn(self, client, request)
        if self.agent is not None and self.settling is None:
            turn.check()
            self.turn = turn
            turn.start()
        else:
            self.turn = turn
            self.gateway.spawn(turn.revive_and_start())
        self.changed()

    def cancel(self) -> None:
        """Cancel the turn, whichever client began it; what another process runs is cancelled by that process."""
        self.gateway.stopping(self)
        if self.turn is not None:
            self.turn.cancel(self.gateway.config.limits.cancel_timeout)
        elif self.follows:
            self.notify_agent("session/cancel", encode({"sessionId": self.id}))

    @property
    def can_cancel(self) -> bool:
        """A turn runs here, or the process that may run one can be told."""
        return self.turn is not None or self.follows

    def notify_agent(self, method: str, params: bytes) -> None:
        if self.agent is not None:
            self.agent.peer.notify(method, with_session(params, self.agent_session_id))

    def check_load(self) -> None:
        """An agent that does not read gets no more, so that others go on (G-084)."""
        if self.require_agent().overloaded():
            raise internal(f"The agent {self.agent_name} does not read its input", "agent_unavailable")

    # -- from the agent

    def agent_update(self, kind: str, line: bytes, size: int = -1) -> None:
        """The message path: splice and publish (see updates.py for what is looked into, and what `size` is)."""
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
        """Told by the process that has the session: what a client of this one said or did there."""
        if kind in TURN_KINDS and self.turn is not None:
            self.feed.publish(events.tag_of(kind), line, self.turn.client)
        else:
            self.agent_update(kind, line)

    def tell_first(self, tell: Callable[[], None]) -> None:
        """Call `tell` when the agent's next update comes, without a look at those after it."""

        def first(kind: str, line: bytes) -> None:
            self._held = None
            tell()
            self.agent_update(kind, line)

        self._held = first

    def forget_first(self) -> None:
        if self._held != self._swallow:
            self._held = None

    def _swallow(self, kind: str, line: bytes) -> None:
        """Not shown, but noticed: what the agent can do now is news, also in the middle of an old story."""
        if kind in HISTORY_KINDS:
            self.swallowed.append(line)
            self._swallowed_bytes += len(line)
            while len(self.swallowed) > 1 and (
                len(self.swallowed) > limits.SWALLOWED_EVENTS
                or self._swallowed_bytes > limits.SWALLOWED_BYTES
            ):
                self._swallowed_bytes -= len(self.swallowed.popleft())
        kind = dialects.RENAMED_KINDS.get(kind, kind)
        if kind in REMEMBERED:
            self.current.update((kind, shown) for shown in self._rewriter.rewrite(line))

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
            self.forwarding.to_client(request, clients[0], self.for_client(request.params))

    def agent_notification(self, method: str, params: bytes) -> None:
        """Anything but an update; for updates that are odd enough to come this way it is the same."""
        if self._held != self._swallow:
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
        """A session result, by default the last one, as this client takes it."""
        told = self.last_result if result is None else result
        capabilities = client.capabilities
        return self.options.for_client(told, boolean=capabilities.boolean_options, models=capabilities.models)

    def tell_offer(self) -> None:
        """Journal what the agent lets people choose, so that who reads later, without an agent, knows it too."""
        offer = {name: self.last_result[name] for name in OFFERED if self.last_result.get(name)}
        if offer and offer != self._offered:
            self._offered = offer
            self.record("offered", **offer)

    # -- order

    def publish(self, update: JsonObject, author: ClientConnection | None = None) -> None:
        """An update of the gateway's own making."""
        kind, line = str(update.get("sessionUpdate")), update_line(self.id, update)
        self.feed.publish(events.tag_of(kind), line, author, varied=self._is_varied(kind, line))

    def _is_varied(self, kind: str, line: bytes) -> bool:
        """Whether clients are shown it differently: terminals are one client's own, not all know boolean options."""
        if kind in TOOL_KINDS:
            return b'"terminalId"' in line or self.mirrored
        return kind == OPTION_UPDATE

    def record(self, kind: str, **facts: object) -> None:
        self.feed.record(events.record(kind, **facts))

    def after_events(self, action: Callable[[], None], client: ClientConnection | None = None) -> None:
        """Run `action` when everything published so far is out; for a client that is behind, out to that client."""

        def hand_over() -> None:
            attachment = client.attachments.get(self.id) if client is not None else None
            if attachment is None or attachment.is_current:
                action()
            else:
                attachment.after(self.feed.delivered, partial(attachment.after_terminals, action))

        self.feed.then(hand_over)

    async def settled(self) -> None:
        """Wait until everything published so far is stored and handed over."""
        done = asyncio.Event()
        self.feed.then(done.set)
        await done.wait()

    def terminals_used(self) -> None:
        """A replay of this session has terminal references to replace."""
        if not self.has_terminals:
            self.has_terminals = True
            self.save_extra(terminals=True)

    def save(self, changes: SessionChanges) -> None:
        """Keep the directory up to date, in order with the journal; what cannot be written now is owed."""
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
        """The box that it asked for when it was made, or that the command line put it into; its agents always get it."""
        name = self.extra.get("sandbox")
        return name if isinstance(name, str) else None

    def save_extra(self, **facts: object) -> None:
        self.extra = {**self.extra, **facts}
        self.save(SessionChanges(extra=self.extra))

    def rename(self, title: str) -> None:
        """A title that a person chose; the agent's own ideas do not replace it any more."""
        self.title = title
        self.save_extra(named=True)
        self.save(SessionChanges(title=title))
        self.publish({"sessionUpdate": "session_info_update", "title": title})
        self.changed()

    def notice(self, title: str, severity: str = "warning") -> None:
        """Tell people something that they must not miss: as a notice where the client knows it, else as text."""
        log.warning(title, extra={"session": self.id})
        self.record("notice", title=title, severity=severity)
        for attachment in self.attachments:
            if not attachment.reads_journal:  # those have the record
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
        """The agent answered a prompt that was given up; from now on it speaks of what comes next."""
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
        """Its own agent waits, and no other session does; the one that waits is let go, whatever became of it."""
        if self._congested_agent is not None:
            self._congested_agent.release(self.feed)
        self._congested_agent = self.agent if congested else None
        if self._congested_agent is not None:
            self._congested_agent.hold(self.feed)

    def claim_journal(self) -> None:
        self.gateway.claim_journal(self)

    def hold_agent(self, hold: bool) -> None:
        """While events wait to be stored, their agent waits too: nothing piles up here."""
        if self._waiting_agent is not None:
            self._waiting_agent.release(self)
        self._waiting_agent = self.agent if hold else None
        if self._waiting_agent is not None:
            self._waiting_agent.hold(self)


async def settle(sessions: Collection[Session], seconds: float) -> set[Session]:
    """Wait until everything published so far is stored and handed over; those of which that holds in time."""
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
