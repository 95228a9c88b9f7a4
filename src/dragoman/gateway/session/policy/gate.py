"""What is done with a verdict about an act that is a request of its own: a file, a command, a switch of the mode.

What no rule is about goes on as it comes. A deny is an error that names the rule. A rule that asks makes a permission
question, unless the same was allowed in this turn when the agent asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Protocol

from dragoman.gateway.ids import new_question_id
from dragoman.gateway.json_types import JsonObject, as_object, encode, read_object
from dragoman.gateway.session.open_tools import OpenTools
from dragoman.gateway.session.policy.verdict import DEFAULT, Verdict
from dragoman.gateway.session.stream import Stream
from dragoman.rpc.request import Reply, Request
from dragoman.wire.errors import FORBIDDEN, RpcError, internal

ALLOW, REJECT = "allow", "reject"
OPTIONS: list[JsonObject] = [
    {"optionId": ALLOW, "name": "Allow once", "kind": "allow_once"},
    {"optionId": REJECT, "name": "Reject", "kind": "reject_once"},
]
ALLOWED_BEFORE = "a person allowed the same in this turn"
DENIED: JsonObject = {"outcome": "selected", "optionId": REJECT}
ALLOWED: JsonObject = {"outcome": "selected", "optionId": ALLOW}


class Recorder(Protocol):
    """Records decisions: the part of a session's policy that is used here."""

    def see(self, tool: JsonObject) -> None:
        """Track what is told about a tool call, and record it."""

    def record(self, verdict: Verdict, tool: JsonObject, outcome: JsonObject) -> None: ...

    def carry_out(
        self,
        verdict: Verdict,
        tool: JsonObject,
        outcome: JsonObject,
        then: Callable[[], None],
        refuse: Callable[[str], None],
        *,
        journaled: bool = True,
    ) -> None: ...


class Step(Request):
    """One step of a client's request that rules decide by itself, also between two turns."""

    __slots__ = ("_done",)

    def __init__(self, cause: Request, done: asyncio.Future[None]) -> None:
        """`done` gets the error if the step is refused."""
        super().__init__(cause.peer, cause.id, cause.key, cause.method, cause.params, None)
        self._done = done

    def fail(self, error: RpcError | bytes) -> None:
        self.answered = True
        if not self._done.done():
            self._done.set_exception(error if isinstance(error, RpcError) else Reply(error=error).as_error())

    def cancel(self) -> None:
        """The client waits no longer."""
        if self.on_cancel is not None:
            self.on_cancel()


class OwnQuestion(Request):
    """A permission question that the gateway asks, about what was requested without asking."""

    __slots__ = ("_done", "of_client", "verdict")

    def __init__(
        self, cause: Request, params: JsonObject, verdict: Verdict, done: Callable[[JsonObject], None]
    ) -> None:
        """`done` is called with the outcome; `verdict` is what the rules say, so that they are not asked again."""
        super().__init__(cause.peer, cause.id, cause.key, "session/request_permission", encode(params), None)
        self.verdict = verdict
        self.of_client = isinstance(cause, Step)
        self._done = done
        cause.on_cancel = self._cancelled

    def reply(self, result: bytes) -> None:
        self._end(as_object(read_object(result).get("outcome")))

    def fail(self, error: RpcError | bytes) -> None:
        self._end({})

    def abandon(self) -> None:
        self.answered = True

    def _cancelled(self) -> None:
        if self.on_cancel is not None:
            self.on_cancel()

    def _end(self, outcome: JsonObject) -> None:
        if not self.answered:
            self.answered = True
            self._done(outcome)


def is_of_client(request: Request) -> bool:
    """Whether it is a question about what a client may want between two turns: a switch of the mode, a commit."""
    if not isinstance(request, OwnQuestion):
        return False
    return request.of_client or request.verdict.act.get("kind") == "switch_mode"


class Gate:
    def __init__(
        self, stream: Stream, tools: OpenTools, recorder: Recorder, ask: Callable[[Request], None]
    ) -> None:
        """`ask` puts a permission question to the session's clients."""
        self._stream = stream
        self._tools = tools
        self._recorder = recorder
        self._ask_clients = ask

    def check(
        self,
        request: Request,
        tool: JsonObject,
        verdict: Verdict,
        go_on: Callable[[], None],
        *,
        recorded: bool = True,
    ) -> None:
        """Call `go_on` if the request is allowed, at once or after a question; raises if it is denied.

        `tool` shows the act as a tool call. With `recorded` an allow by a rule is journaled too.
        """
        if verdict.decision == "deny":
            self._recorder.record(verdict, tool, DENIED)
            raise denied(tool, verdict)
        if verdict.decision == "ask":
            if not self._tools.allowed.take(verdict.act, verdict.wanted):
                self._ask(request, tool, verdict, go_on)
                return
            recorded, verdict = False, replace(verdict, decision="allow", why=ALLOWED_BEFORE)

        def refuse(reason: str) -> None:
            request.fail(internal(reason, "audit"))

        journaled = recorded and verdict.rule != DEFAULT
        self._recorder.carry_out(
            verdict, tool, ALLOWED, partial(_go_on, request, go_on), refuse, journaled=journaled
        )

    def _ask(self, request: Request, shown: JsonObject, verdict: Verdict, go_on: Callable[[], None]) -> None:
        tool = {"toolCallId": new_question_id(), "status": "pending", **shown}

        def done(outcome: JsonObject) -> None:
            allowed = outcome.get("outcome") == "selected" and outcome.get("optionId") == ALLOW
            self._close(tool, "completed" if allowed else "failed")
            if not allowed:
                request.fail(denied(shown, verdict, asked=True))
                return
            _go_on(request, go_on)

        question = {"sessionId": self._stream.id, "toolCall": tool, "options": OPTIONS}
        self._ask_clients(OwnQuestion(request, question, verdict, done))

    def _close(self, tool: JsonObject, status: str) -> None:
        if self._tools.told(tool["toolCallId"]):
            closing = {
                "sessionUpdate": "tool_call_update",
                "toolCallId": tool["toolCallId"],
                "status": status,
            }
            self._recorder.see(closing)
            self._stream.publish(closing)


def _go_on(request: Request, go_on: Callable[[], None]) -> None:
    try:
        go_on()
    except RpcError as error:
        request.fail(error)


def denied(tool: JsonObject, verdict: Verdict, *, asked: bool = False) -> RpcError:
    told = f": {verdict.reason}" if verdict.reason is not None else ""
    how = "was not allowed by a person, who had to be asked by" if asked else "is denied by"
    said = f"{tool['title']} ({tool['name']}) {how} the rule {verdict.rule!r}{told}"
    return RpcError(FORBIDDEN, said, {"reason": "policy", "rule": verdict.rule, "why": verdict.why})
