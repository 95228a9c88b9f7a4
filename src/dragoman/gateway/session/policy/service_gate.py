"""Rules before an agent's `fs/*` and `terminal/create` calls are served.

What no rule is about is served as it comes: the agent asks for permission under its tool call, or not. A rule that
asks makes a permission question, unless the person allowed the same in this turn when the agent asked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from dragoman.gateway.ids import new_question_id
from dragoman.gateway.json_types import JsonObject, as_object, decode_object, encode, read_object
from dragoman.gateway.session.open_tools import OpenTools
from dragoman.gateway.session.policy.verdict import DEFAULT, Verdict
from dragoman.gateway.session.stream import Stream
from dragoman.rpc.request import Request
from dragoman.wire.errors import FORBIDDEN, RpcError

ALLOW, REJECT = "allow", "reject"
OPTIONS: list[JsonObject] = [
    {"optionId": ALLOW, "name": "Allow once", "kind": "allow_once"},
    {"optionId": REJECT, "name": "Reject", "kind": "reject_once"},
]
DENIED = {"outcome": {"outcome": "selected", "optionId": REJECT}}
ALLOWED = {"outcome": {"outcome": "selected", "optionId": ALLOW}}
UNRECORDED = "fs/read_text_file"
"""Allowed without a record: an agent reads thousands of files."""


class OwnQuestion(Request):
    """A permission question that the gateway asks, about a call that the agent made without asking."""

    __slots__ = ("_done", "verdict")

    def __init__(
        self, cause: Request, params: JsonObject, verdict: Verdict, done: Callable[[JsonObject], None]
    ) -> None:
        """`done` is called with the outcome; `verdict` is what the rules say, so that they are not asked again."""
        super().__init__(cause.peer, cause.id, cause.key, "session/request_permission", encode(params), None)
        self.verdict = verdict
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


class Rules(Protocol):
    """The part of a session's policy that is used here."""

    def service_verdict(self, method: str, params: JsonObject) -> Verdict: ...

    def record(self, verdict: Verdict, tool: JsonObject, outcome: JsonObject) -> None: ...


class ServiceGate:
    def __init__(
        self, stream: Stream, tools: OpenTools, rules: Callable[[], Rules], ask: Callable[[Request], None]
    ) -> None:
        """`ask` puts a permission question to the session's clients."""
        self._stream = stream
        self._tools = tools
        self._rules = rules
        self._ask_clients = ask

    def check(self, request: Request, serve: Callable[[], None]) -> None:
        """Call `serve` if the call is allowed, at once or after a question; raises for one that is denied."""
        params = decode_object(request.params)
        policy = self._rules()
        verdict = policy.service_verdict(request.method, params)
        if verdict.decision == "deny":
            policy.record(verdict, _shown(request.method, params), DENIED["outcome"])
            raise _denied(request.method, verdict)
        if verdict.decision == "ask" and not self._tools.allowed.take(verdict.act):
            self._ask(request, params, verdict, serve)
            return
        if verdict.decision == "allow" and verdict.rule != DEFAULT and request.method != UNRECORDED:
            policy.record(verdict, _shown(request.method, params), ALLOWED["outcome"])
        serve()

    def _ask(self, request: Request, params: JsonObject, verdict: Verdict, serve: Callable[[], None]) -> None:
        tool = {"toolCallId": new_question_id(), "status": "pending", **_shown(request.method, params)}

        def done(outcome: JsonObject) -> None:
            allowed = outcome.get("outcome") == "selected" and outcome.get("optionId") == ALLOW
            self._close(tool, "completed" if allowed else "failed")
            if not allowed:
                request.fail(_denied(request.method, verdict, asked=True))
                return
            try:
                serve()
            except RpcError as error:
                request.fail(error)

        question = {"sessionId": self._stream.id, "toolCall": tool, "options": OPTIONS}
        self._ask_clients(OwnQuestion(request, question, verdict, done))

    def _close(self, tool: JsonObject, status: str) -> None:
        if self._tools.told(tool["toolCallId"]):
            closing = {
                "sessionUpdate": "tool_call_update",
                "toolCallId": tool["toolCallId"],
                "status": status,
            }
            self._tools.see(closing)
            self._stream.publish(closing)


def _shown(method: str, params: JsonObject) -> JsonObject:
    from dragoman.policy.requests.service import tool_call_of

    return tool_call_of(method, params)


def _denied(method: str, verdict: Verdict, *, asked: bool = False) -> RpcError:
    told = f": {verdict.reason}" if verdict.reason is not None else ""
    how = "was not allowed by a person, who had to be asked by" if asked else "is denied by"
    said = f"{method} {how} the rule {verdict.rule!r}{told}"
    return RpcError(FORBIDDEN, said, {"reason": "policy", "rule": verdict.rule, "why": verdict.why})
