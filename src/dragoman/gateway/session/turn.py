"""A turn: one prompt until its stop reason; every prompt is answered exactly once (G-090 to G-095).

    asked ──prompt sent──► running ──agent answers──────────────────► settled
      │ cancel                │ cancel                                   ▲ ▲
      ▼                       ▼                                          │ │
    settled                cancelling ──agent answers────────────────────┘ │
                              └──────── silent for cancel_timeout ─────────┘   the agent is given up

The table is in `states`. What settles a turn first wins; everything later is ignored.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Raw

from dragoman.gateway.delivery import events, transcript
from dragoman.gateway.json_types import (
    JsonObject,
    as_object,
    decode_object,
    encode,
    read_object,
    with_own_meta,
)
from dragoman.gateway.ports.store import StoreError
from dragoman.gateway.ports.witness import TRACE, UNOBSERVED, Observed
from dragoman.gateway.refusals import reason
from dragoman.gateway.rewriting.content import prompt_params, read_prompt
from dragoman.gateway.rewriting.rewrite import meta_in
from dragoman.gateway.rewriting.updates import update_line
from dragoman.gateway.session import endings
from dragoman.gateway.session.prompts.answer import read_result
from dragoman.gateway.session.prompts.queue import CANCELLED, QueuedPrompt
from dragoman.gateway.session.prompts.text import is_command, title_of
from dragoman.gateway.session.states import TurnEvent, TurnState, turn_life
from dragoman.gateway.session.usage import accounting
from dragoman.log import LOG_CONTEXT, note, prompts_wanted, redact_prompt
from dragoman.rpc.request import Reply, Request
from dragoman.wire import limits
from dragoman.wire.errors import Malformed, RpcError, internal

if TYPE_CHECKING:
    from dragoman.gateway.access.client import Client
    from dragoman.gateway.session.session import Session

log = logging.getLogger(__name__)


class Turn:
    def __init__(
        self, session: Session, client: Client, request: Request, queued: QueuedPrompt | None = None
    ) -> None:
        """`queued`: the prompt waited, and may have been edited."""
        self.session = session
        self.client = client
        self.request = request
        self.call: int | None = None
        self._life = turn_life(session.id, session.illegal)
        self.cancelled = False
        """A client asked to cancel it after the agent was sent the prompt."""
        self.recaps = False
        """The recap is sent to the agent with this prompt."""
        self._done: asyncio.Event | None = None
        self._queued = queued
        self._params = request.members if queued is None else {**request.members, "prompt": queued.prompt}
        self._prompt = read_prompt(self._params, session.gateway.config.limits.max_prompt_bytes)
        self._blocks: list[Raw] = []
        self._meta = meta_in(self._params)
        self.prompter = prompter_of(client, self._meta) if queued is None else queued.by
        """The identity that sent the prompt: the name of a token, or `local`."""
        self._observed: Observed | None = None
        self._began = 0.0
        self._timers: list[asyncio.TimerHandle] = []
        self._shown = False
        self._on_shown: Callable[[], None] | None = None
        self._on_settled: list[Callable[[Reply], None]] = []
        self._reply: Reply | None = None

    @property
    def cancelling(self) -> bool:
        """The agent was told to stop and has not answered yet."""
        return self._life.state is TurnState.CANCELLING

    @property
    def settled(self) -> bool:
        return self._life.state is TurnState.SETTLED

    # -- beginning

    def title(self) -> str:
        """The beginning of the prompt; call `check` before."""
        return title_of(self._blocks) or ""

    def check(self) -> None:
        """Raise for content that this agent does not support (G-058), or if it does not read its input."""
        agent = self.session.binding.require()
        if not self.session.follows:  # its owner checks it
            self.session.policy.check_level()
        self._blocks = self._prompt.for_agent(agent.capabilities, self.session.agent_name)
        self.session.check_load()

    async def restart_and_start(self) -> None:
        """Restart the agent, then start the turn."""
        self.request.on_cancel = self.session.cancel
        TRACE.set({**self._meta, **self._begin().carried})
        LOG_CONTEXT.set(self._log_facts)
        try:
            await self.session.gateway.ready(self.session, self.client)
            await self.session.gateway.prepare(self.session, self.request, self.prompter)
            if not self.settled:
                self.check()
                await self.session.services.checkpoints.begin(self.title)
            if not self.settled:
                self.start()
        except RpcError as error:
            self.settle(Reply.failed(error))
        except Malformed as error:
            self.settle(Reply.failed(error.as_error()))
        except StoreError as error:
            self.settle(Reply.failed(internal(str(error), error.code)))
        except Exception:  # a bug of ours must not leave the session in a turn that never ends
            log.exception("turn could not start")
            self.settle(Reply.failed(internal("Internal error in the gateway; its log has the details")))

    def start(self) -> None:
        session = self.session
        agent = session.binding.require()
        flush = agent.peer.flush if not agent.peer.closed else None
        if flush is None:
            self._show_prompt()  # an answer may come before `request` returns
        blocks = self._blocks
        if session.recovery.recap is not None and not is_command(
            blocks, session.updates.current
        ):  # the agent recognizes a command only at the beginning of the prompt
            blocks = [Raw(session.recovery.recap), *blocks]
            self.recaps = True
        session.updates.turn_begins()
        observed = self._begin()
        if observed is not UNOBSERVED:
            session.updates.call_at_next_update(observed.first)
        carried = observed.carried if observed is not UNOBSERVED else None
        changes: JsonObject = {"_meta": {**self._meta, **carried}} if carried else {}
        if session.follows:  # the owner believes this process, so what a client wrote there must not stay
            changes = with_own_meta({"_meta": {**self._meta, **(carried or {})}}, promptedBy=self.prompter)
        params = prompt_params(self._params, session.agent_session_id, blocks, changes)
        self.call = agent.peer.request("session/prompt", params, self._answered)
        if flush is not None:
            flush()  # the agent works while the gateway does the rest
            self._show_prompt()
        if self.settled:  # its connection was closed already
            return
        self._life.send(TurnEvent.SENT)
        agent.origins[self.call] = self.request.id
        self.request.on_cancel = self._cancel_requested
        session.entry.touch("working")
        session.silence.turn_begins()
        limit = session.gateway.config.sessions.prompt_timeout
        if limit:
            self._later(limit, lambda: self._time_over(limit))

    def _begin(self) -> Observed:
        """Begin to observe and log the turn, once; a prompt refused before is not counted as a turn."""
        if self._observed is None:
            session = self.session
            self._observed = session.gateway.witness.turn(session.id, session.agent_name, self._meta)
            self._began = time.monotonic()
            level = logging.INFO if prompts_wanted() else logging.DEBUG  # the end is always logged
            if log.isEnabledFor(level):
                log.log(level, "turn began", extra={**self._log_facts, **self._prompt_for_log()})
        return self._observed

    @property
    def _log_facts(self) -> JsonObject:
        return {
            "session": self.session.id,
            "client": self.client.key,
            "request": self.request.label,
            "agent": self.session.agent_name,
        }

    def _prompt_for_log(self) -> JsonObject:
        """The prompt for the log, if prompts may be logged."""
        return {"prompt": bytes(self._params.get("prompt", b"")).decode()} if prompts_wanted() else {}

    def _show_prompt(self) -> None:
        """Publish the prompt, for other clients and for later replays."""
        session = self.session
        if session.feed.reaches(self.client) and not session.follows:
            named = self._message_meta()
            edited = self._queued is not None and self._queued.edited  # its author did not write it like this
            author = None if edited else self.client
            for block in self._blocks:
                update = {"sessionUpdate": "user_message_chunk", "content": block, **named}
                session.feed.publish(events.PROMPT, update_line(session.id, update), author)
        if session.entry.title is None:
            session.entry.begin_turn(title_of(self._blocks))
        self._shown = True
        if self._on_shown is not None:
            self._on_shown()

    def when_shown(self, action: Callable[[], None]) -> None:
        """Run `action` when the prompt has been published."""
        if self._shown:
            action()
        else:
            self._on_shown = action

    def _message_meta(self) -> JsonObject:
        """The client's id of its message as `_meta`: stored, so that a message sent twice is recognized."""
        if not self._meta:
            return {}
        message_id = as_object(self._meta.get("dragoman")).get("clientMessageId")
        if not isinstance(message_id, str) or len(message_id) > limits.PEER_ID_LENGTH:
            return {}
        return {"_meta": {"dragoman": {"clientMessageId": message_id}}}

    # -- ending

    def cancel(self, timeout: float) -> None:
        """Cancel at the agent, answer its open questions, and wait no longer than `timeout` (G-091, G-093)."""
        if self.settled:
            return
        if self._life.state is TurnState.ASKED:
            self.settle(CANCELLED)
            return
        self._life.send(TurnEvent.CANCELLED)
        if not self.cancelled:
            self.cancelled = True
            self._later(timeout, lambda: self._give_up(timeout))
        agent = self.session.agent
        if agent is not None:
            agent.peer.notify("session/cancel", encode({"sessionId": self.session.agent_session_id}))
        self.session.questions.cancel_all("cancel")

    def settle(self, reply: Reply, outcome: JsonObject | None = None) -> None:
        """Answer the prompt with `reply`; `outcome` is its decoded result or error, if already known."""
        if self.settled:
            return
        self._life.send(TurnEvent.SETTLED)
        self._reply = reply
        if outcome is None:
            outcome = read_object(reply.result if reply.ok else reply.error)
        for timer in self._timers:
            timer.cancel()
        if self.call is not None and self.session.agent is not None:
            self.session.agent.origins.pop(self.call, None)
        self.session.updates.forget_call()
        endings.turn_ended(self.session, self, reply, outcome)
        if self.client.peer.flush is not None:
            self.client.peer.flush()
        self._begin()
        seconds = round(time.monotonic() - self._began, 3)
        # After the answer is written: uvloop writes at the end of the next turn of the loop.
        loop = asyncio.get_running_loop()
        loop.call_soon(loop.call_soon, self._after_answer, reply.ok, outcome, seconds)
        if self._done is not None:
            self._done.set()
        for action in self._on_settled:
            self.session.after_events(partial(action, reply), self.client)

    def when_settled(self, action: Callable[[Reply], None]) -> None:
        """Run `action` with the turn's answer when it is settled."""
        if self._reply is not None:
            action(self._reply)
        else:
            self._on_settled.append(action)

    def as_told(self, reply: Reply) -> Reply:
        """The answer as its client gets it."""
        told = self._queued.told if self._queued is not None else {}
        return (
            Reply(result=encode(with_own_meta(decode_object(reply.result), **told)))
            if told and reply.ok
            else reply
        )

    @property
    def done(self) -> asyncio.Event:
        """Set when the answer is on its way to the client."""
        if self._done is None:
            self._done = asyncio.Event()
            if self.settled:
                self._done.set()
        return self._done

    def _after_answer(self, ok: bool, outcome: JsonObject, seconds: float) -> None:
        """Update metrics, log, directory, parking and watchers."""
        stop_reason = str(outcome.get("stopReason")) if ok else "error"
        error = "" if ok else str(outcome.get("message"))
        self._begin().end(stop_reason, error)
        facts = {**self._log_facts, "outcome": stop_reason, "seconds": seconds}
        if not ok:
            # `redact_prompt`: the error of an agent may quote the prompt.
            facts |= {
                "code": outcome.get("code"),
                "error": redact_prompt(error),
                "data": redact_prompt(reason(outcome)),
            }
        note(log, "turn ended", facts)
        accounting.turn_ended(self.session, self, outcome, stop_reason, seconds)
        endings.turn_over(self.session)

    def fail(self, error: RpcError) -> None:
        """Settle the turn with `error`, or after a cancel as cancelled (G-110)."""
        self.settle(CANCELLED if self.cancelling else Reply.failed(error))

    def _answered(self, reply: Reply) -> None:
        if self.settled:
            self.session.updates.publish()
        elif reply.ok:
            if self.recaps:  # after a prompt that failed, the next one has the recap again
                self.session.recovery.recap_sent()
            answer, outcome = read_result(reply)
            if self._killed(answer, outcome):
                return  # its link is about to close, which settles the turn; a prompt before that would reach no agent
            if self.session.updates.corrections.failed(answer):
                self.session.gateway.spawn(self._fail_in_its_words())
            else:
                self.settle(answer, outcome)
        elif self.cancelling:
            self.settle(CANCELLED)  # a cancelled prompt must not be answered with an error (G-092)
        else:
            self.settle(self.session.reply_for_client(reply))

    def _killed(self, answer: Reply, outcome: JsonObject) -> bool:
        """Whether the agent's program is dead and a child of it answers `cancelled` without a cancel (quirk)."""
        if not answer.ok or outcome.get("stopReason") != "cancelled" or self.cancelling:
            return False
        agent = self.session.agent
        if agent is None or agent.handle is None:
            return False
        end = agent.handle.end()
        return end.exit_code is not None or end.signal is not None

    async def _fail_in_its_words(self) -> None:
        """Fail the turn with the agent's last message, which says why it failed (quirk failure_as_end_turn)."""
        await self.session.wait_settled()
        journal, words = self.session.journal, None
        if journal is not None:
            try:
                words = await transcript.last_answer(journal.store, self.session.id)
            except StoreError as error:  # the turn still ends, with a shorter error
                log.warning("the agent's last words cannot be read: %s", error, extra=self._log_facts)
        why = f": {words}" if words else "; the agent's last message says why"
        self.settle(Reply.failed(internal(f"The turn failed{why}", "agent_error")))

    def _cancel_requested(self) -> None:
        """Forward `$/cancel_request` for a prompt, and also send `session/cancel`, which all agents know (G-095)."""
        agent = self.session.agent
        if agent is not None and self.call is not None:
            agent.peer.cancel(self.call)
        if not self.session.follows:  # the owner knows whether it runs or waits there
            self.session.cancel()

    def withdraw(self) -> None:
        """Its client left: cancel it; at the owner of a session that is followed, only this prompt."""
        if self.session.follows and self.call is not None:
            self._cancel_requested()
        else:
            self.session.cancel()

    # -- time limits

    def _time_over(self, limit: float) -> None:
        self.session.notice(
            f"The turn took longer than {limit:g} s (sessions.prompt_timeout) and was cancelled."
        )
        self.session.cancel()

    def _give_up(self, timeout: float) -> None:
        log.warning("agent is silent %g s after cancel", timeout, extra={"session": self.session.id})
        self.settle(CANCELLED)
        endings.give_up_agent(self.session)

    def _later(self, seconds: float, action: Callable[[], None]) -> None:
        self._timers.append(asyncio.get_running_loop().call_later(seconds, action))


def prompter_of(client: Client, meta: JsonObject) -> str:
    """The client's identity; another process of ours says whose prompt it passes on."""
    told = as_object(meta.get("dragoman")).get("promptedBy") if meta else None
    known = client.terms
    return told if known.local_process and isinstance(told, str) else known.identity.name
