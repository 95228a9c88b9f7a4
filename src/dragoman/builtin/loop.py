"""One turn with a model: send a request, show the answer, run its tool calls, send the next request.

The stop reason says why the turn ended: the model was done (`end_turn`), reached a limit (`max_tokens`), refused
(`refusal`), requested tools too often (`max_turn_requests`), or the user cancelled. A failure of the model fails the
prompt with the provider's message; the session continues.
"""

from __future__ import annotations

import asyncio
import random
import secrets
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from dragoman.builtin.instructions import instructions
from dragoman.builtin.models.content import Prompt
from dragoman.builtin.models.failures import ModelFailed
from dragoman.builtin.models.llm import Answer, Call, Conversation, Llm, Piece
from dragoman.builtin.models.providers import build
from dragoman.builtin.modes import MODES
from dragoman.builtin.toolbox import Outcome
from dragoman.wire.errors import internal

if TYPE_CHECKING:
    from dragoman.builtin.session import Session

Json = dict[str, Any]
_T = TypeVar("_T")

MAX_REQUESTS = 100
"""Requests to the model in one turn: bounds the cost of a model that never stops calling tools."""

MAX_INVALID = 5
"""Consecutive tool calls with invalid arguments after which the turn ends."""

MAX_ATTEMPTS = 5
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0

COMPACT_AT = 0.8
"""The share of the context window that may be used before the conversation is shortened."""

SUMMARIZE = (
    "Summarize our conversation for yourself, because its text will be removed: the user's goals and wishes, "
    "what was found out, which files were read and changed and how, what is left to do. Answer with the summary alone."
)

STOP_REASONS = {"length": "max_tokens", "content_filter": "refusal"}


async def converse(session: Session, prompt: Sequence[Json]) -> str:
    """Answer a prompt with the session's model; returns the stop reason."""
    llm = await _llm(session)
    conversation = _conversation(session)
    if session.mcp is not None:
        await session.mcp.ready(session)
    translated = Prompt(session.workspace, llm)
    content = await translated.content(prompt)
    for refusal in translated.refusals:
        session.say(f"{refusal}\n\n")
    if not any(part for part in content):
        return "end_turn"
    if session.unsent_results:
        results, session.unsent_results = session.unsent_results, []
        content = ["The user ran these commands meanwhile:\n\n" + "\n\n".join(results), *content]
    start = len(conversation.messages)
    conversation.add_prompt(content)
    try:
        return await ModelTurn(session, llm, conversation, start).run()
    except ModelFailed as failure:
        raise internal(str(failure), failure.reason, model=llm.name) from failure
    finally:
        session.history.add_messages(conversation.take_unsaved())


async def compact_now(session: Session) -> None:
    """Compact the whole conversation at the user's request."""
    llm = await _llm(session)
    conversation = _conversation(session)
    if not conversation.messages:
        session.say("There is nothing to compact yet.")
        return
    try:
        await ModelTurn(session, llm, conversation, len(conversation.messages)).compact(keep=0)
    except ModelFailed as failure:
        raise internal(str(failure), failure.reason, model=llm.name) from failure


async def _llm(session: Session) -> Llm:
    assert session.model is not None
    try:
        return await asyncio.to_thread(build, session.model, session.models.config)
    except ModelFailed as failure:
        raise internal(str(failure), failure.reason, model=session.model) from failure


def _conversation(session: Session) -> Conversation:
    if session.conversation is None:
        session.conversation = Conversation.restore(session.history.messages)
    return session.conversation


class ModelTurn:
    """The requests of one turn; `start` is where its messages begin in the conversation."""

    def __init__(self, session: Session, llm: Llm, conversation: Conversation, start: int) -> None:
        self._session = session
        self._llm = llm
        self._conversation = conversation
        self._start = start
        self._invalid = 0
        self._too_long = False
        """Compaction failed: this turn continues without it while the context has room."""

    async def run(self) -> str:
        for _ in range(MAX_REQUESTS):
            if self._needs_compaction() and not self._too_long:
                self._too_long = not await self.compact(keep=self._conversation.last_turn())
            self._keep()
            answer = await self._ask()
            self._account(answer)
            if answer.finish in STOP_REASONS and not answer.calls:
                return self._stopped(STOP_REASONS[answer.finish])
            if not answer.calls and not answer.suspended:
                return "end_turn"
            if answer.calls:
                await self._run_calls(answer.calls)
            if self._invalid >= MAX_INVALID:
                self._session.say(
                    f"\n\nThe model's last {self._invalid} tool calls were not valid, so I stopped asking it."
                )
                return "end_turn"
        return "max_turn_requests"

    def _keep(self) -> None:
        """Save before each request, when every call has its result: a long turn survives the end of its process."""
        self._session.history.add_messages(self._conversation.take_unsaved())
        self._session.save()

    def _stopped(self, reason: str) -> str:
        if reason == "refusal":
            self._conversation.forget_from(self._start)
            self._session.history.replace_messages(self._conversation.take_unsaved())
        return reason

    # -- asking

    async def _ask(self) -> Answer:
        """One answer; if the conversation is too long for the model, it is compacted once."""
        try:
            return await self._with_retries(self._stream)
        except ModelFailed as failure:
            if failure.reason != "context_full" or not await self.compact(
                keep=self._conversation.last_turn()
            ):
                raise
        return await self._with_retries(self._stream)

    async def _with_retries(self, ask: Callable[[], Awaitable[_T]]) -> _T:
        """Call `ask` up to `MAX_ATTEMPTS` times, with pauses, as long as its failures can be retried."""
        for attempt in range(1, MAX_ATTEMPTS):
            try:
                return await ask()
            except ModelFailed as failure:
                if not failure.retry:
                    raise
                await self._pause(failure, attempt)
        return await ask()

    async def _stream(self) -> Answer:
        session = self._session
        text = instructions(session.cwd, MODES[session.mode])
        tools = session.toolbox.available()
        message = f"msg_{secrets.token_hex(8)}"
        stream = self._llm.answer(self._conversation, text, tools)
        try:
            async for piece in stream:
                if isinstance(piece, Answer):
                    return piece
                self._show(piece, message)
                await session.client.wait_writable()
        except asyncio.CancelledError:
            self._conversation.record_interruption([], [])
            raise
        finally:
            await stream.aclose()
        raise AssertionError("a stream ends with its answer")

    def _show(self, piece: Piece, message: str) -> None:
        kind = "agent_thought_chunk" if piece.thinking else "agent_message_chunk"
        self._session.say(piece.text, kind=kind, message=f"{message}_{piece.part}")

    async def _pause(self, failure: ModelFailed, attempt: int) -> None:
        backoff = min(FIRST_PAUSE * 2 ** (attempt - 1), LONGEST_PAUSE) * random.uniform(0.75, 1.25)
        pause = min(failure.retry_after, LONGEST_PAUSE) if failure.retry_after is not None else backoff
        self._session.say(
            f"{failure} Asking again in {pause:.1f} s (attempt {attempt + 1} of {MAX_ATTEMPTS}).\n\n",
            kind="agent_thought_chunk",
        )
        await asyncio.sleep(pause)

    # -- tools

    async def _run_calls(self, calls: Sequence[Call]) -> None:
        """Run the calls one after the other: the second may depend on what the first did."""
        results: list[tuple[Call, Outcome]] = []
        try:
            for call in calls:
                results.append((call, await self._run_call(call)))
        except asyncio.CancelledError:
            self._conversation.record_interruption(calls, results)
            raise
        self._conversation.add_results(results)

    async def _run_call(self, call: Call) -> Outcome:
        if call.arguments is None:
            self._invalid += 1
            return Outcome("invalid", "The arguments are not a JSON object.")
        outcome = await self._session.toolbox.call(call.name, call.arguments)
        self._invalid = self._invalid + 1 if outcome.status == "invalid" else 0
        return outcome

    # -- context window

    def _account(self, answer: Answer) -> None:
        """Report the use of the context window and the cost so far to the client."""
        session = self._session
        session.used = answer.tokens or self._conversation.estimate()
        self._spend(answer)
        update: Json = {
            "sessionUpdate": "usage_update",
            "used": session.used,
            "size": self._llm.context_window,
        }
        if session.cost is not None:
            update["cost"] = {"amount": session.cost, "currency": "USD"}
        session.update(update, passing=True)

    def _spend(self, answer: Answer) -> None:
        session = self._session
        session.spent += answer.spent
        if answer.cost is not None:
            session.cost = (session.cost or 0.0) + answer.cost

    def _needs_compaction(self) -> bool:
        limit = self._llm.context_window * COMPACT_AT
        room = self._conversation.last_turn() < len(self._conversation.messages)
        return room and max(self._session.used, self._conversation.estimate()) > limit

    async def compact(self, keep: int) -> bool:
        """Replace all but the last `keep` messages by a summary, which clients show as a tool call.

        False if nothing changed because no summary could be made. Messages too long even to summarize are dropped.
        """
        session, conversation = self._session, self._conversation
        call = {
            "toolCallId": f"compact_{secrets.token_hex(6)}",
            "title": "Shorten the conversation",
            "kind": "think",
        }
        session.update({"sessionUpdate": "tool_call", **call, "status": "in_progress"})
        status, summary, shortened = "failed", "Cancelled.", False
        try:
            summary = await self._with_retries(lambda: self._summary(conversation, keep))
            status, shortened = "completed", True
        except ModelFailed as failure:
            shortened = failure.reason == "context_full"
            fate = "was dropped" if shortened else "stays as it is"
            summary = f"The earlier part {fate}, because no summary could be made: {failure}"
        finally:
            content = [{"type": "content", "content": {"type": "text", "text": summary}}]
            session.update(
                {
                    "sessionUpdate": "tool_call_update",
                    "toolCallId": call["toolCallId"],
                    "status": status,
                    "content": content,
                }
            )
        if not shortened:
            return False
        session.history.replace_messages(conversation.replace(summary, keep))
        self._start = max(0, len(conversation.messages) - keep)
        session.used = 0
        return True

    async def _summary(self, conversation: Conversation, keep: int) -> str:
        whole = conversation.messages
        asked = Conversation(whole[: len(whole) - keep])
        asked.add_prompt([SUMMARIZE])
        parts: list[str] = []
        async for piece in self._llm.answer(asked, "You summarize conversations.", []):
            if isinstance(piece, Answer):
                self._spend(piece)
            elif not piece.thinking:
                parts.append(piece.text)
        return "".join(parts).strip() or "(nothing to remember)"
