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
import re
import time
from collections.abc import Callable
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
from dragoman.gateway.rewriting import dialects
from dragoman.gateway.rewriting.content import prompt_params, read_prompt
from dragoman.gateway.rewriting.rewrite import meta_in
from dragoman.gateway.rewriting.updates import update_line
from dragoman.gateway.session import endings
from dragoman.gateway.session.states import TurnEvent, TurnState, turn_life
from dragoman.log import LOG_CONTEXT, note, prompts_wanted, redact_prompt
from dragoman.rpc.request import Reply, Request
from dragoman.wire import limits
from dragoman.wire.errors import Malformed, RpcError, internal

if TYPE_CHECKING:
    from dragoman.gateway.access.client import Client
    from dragoman.gateway.session.session import Session

log = logging.getLogger(__name__)

CANCELLED = Reply(result=b'{"stopReason":"cancelled"}')
TITLE_LENGTH = 80
_COMMAND = re.compile(r"/([A-Za-z][\w:.-]*)(?=\s|\Z)")
"""A slash command; a path such as `/etc/hosts` does not match."""


class Turn:
    def __init__(self, session: Session, client: Client, request: Request) -> None:
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
        self._params = request.members
        self._prompt = read_prompt(self._params, session.gateway.config.limits.max_prompt_bytes)
        self._blocks: list[Raw] = []
        self._meta = meta_in(self._params)
        self.prompter = self._find_prompter()
        """The identity that sent the prompt: the name of a token, or `local`."""
        self._observed: Observed | None = None
        self._began = 0.0
        self._timers: list[asyncio.TimerHandle] = []
        self._shown = False
        self._on_shown: Callable[[], None] | None = None

    @property
    def cancelling(self) -> bool:
        """The agent was told to stop and has not answered yet."""
        return self._life.state is TurnState.CANCELLING

    @property
    def settled(self) -> bool:
        return self._life.state is TurnState.SETTLED

    # -- beginning

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
            if not self.settled:
                self.check()
                await self.session.services.checkpoints.begin(_title(self._blocks) or "")
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
        if (
            session.recovery.recap is not None and not self._is_command()
        ):  # the agent recognizes a command only at the beginning of the prompt
            blocks = [Raw(session.recovery.recap), *blocks]
            self.recaps = True
        session.updates.publish()
        observed = self._begin()
        if observed is not UNOBSERVED:
            session.updates.call_at_next_update(observed.first)
        session.updates.corrections.turn_begins()
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

    def _find_prompter(self) -> str:
        """The client's identity; another process of ours says whose prompt it passes on."""
        told = as_object(self._meta.get("dragoman")).get("promptedBy") if self._meta else None
        known = self.client.terms
        return told if known.local_process and isinstance(told, str) else known.identity.name

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
            for block in self._blocks:
                update = {"sessionUpdate": "user_message_chunk", "content": block, **named}
                session.feed.publish(events.PROMPT, update_line(session.id, update), self.client)
        if session.entry.title is None:
            session.entry.begin_turn(_title(self._blocks))
        self._shown = True
        if self._on_shown is not None:
            self._on_shown()

    def _is_command(self) -> bool:
        """Whether the prompt is a command of the agent; if the commands are unknown, whether it looks like one."""
        found = _COMMAND.match(_first_text(self._blocks))
        if found is None:
            return False
        told = (
            transcript.read_update(self.session.updates.current.get("available_commands_update", b"")) or {}
        )
        commands = told.get("availableCommands")
        names = [as_object(each).get("name") for each in commands] if isinstance(commands, list) else []
        return not names or found[1] in names

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
            answer, outcome = _read_result(reply)
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


def _read_result(reply: Reply) -> tuple[Reply, JsonObject]:
    """The agent's answer to a prompt as the client gets it, and its decoded result or error."""
    try:
        result = decode_object(reply.result)
    except Malformed:
        return _failed(internal("The agent answered the prompt with something that is not an object"))
    if result.get("stopReason") == "error":  # from older agents; not a v1 stop reason (D-50)
        return _failed(internal("The agent ended the turn with an error", "agent_error", result=result))
    changed = dialects.read_stop_reason(result)
    return (reply, result) if changed is None else (Reply(result=encode(changed)), changed)


def _failed(error: RpcError) -> tuple[Reply, JsonObject]:
    raw = error.encode()
    return Reply(error=raw), decode_object(raw)


def _title(blocks: list[Raw]) -> str | None:
    """The start of the first prompt, used as title until the agent sends one."""
    text = _first_text(blocks)
    if not text:
        return None
    line = text.splitlines()[0].strip()
    return line if len(line) <= TITLE_LENGTH else line[: TITLE_LENGTH - 1].rstrip() + "…"


def _first_text(blocks: list[Raw]) -> str:
    for raw in blocks:
        block = read_object(raw)  # empty if it has numbers that we cannot decode
        text = str(block.get("text", "")).strip() if block.get("type") == "text" else ""
        if text:
            return text
    return ""
