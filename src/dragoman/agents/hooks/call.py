"""A tool call as hooks tell it, as an ACP permission question; and the answer to it, as hooks are told."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import msgspec

from dragoman.rpc.request import Reply
from dragoman.wire.errors import Malformed
from dragoman.wire.json_types import JsonObject, as_object, decode_object, own_meta

OPTIONS: list[JsonObject] = [
    {"optionId": "allow", "name": "Allow", "kind": "allow_once"},
    {"optionId": "reject", "name": "Reject", "kind": "reject_once"},
]


Describe = Callable[[str, JsonObject, str], JsonObject]


@dataclass(frozen=True, slots=True)
class Manner:
    """How one agent's hooks are answered."""

    says_ask: bool = False
    """The hook answers in JSON, as Claude Code's do, and may answer `ask`: then the agent asks people itself.

    Otherwise the hook waits for their answer.
    """
    patience: float | None = None
    """Seconds after which the agent would go on without an answer, less a margin; None if it waits."""
    describe: Describe = lambda name, given, folder: {}
    """Members of the ACP tool call, by the tool's name, its input and the folder that the hook runs in."""


class BadCall(Exception):
    """The hook did not tell a tool call that can be decided about."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The exit code of the hook program, and what it prints."""

    code: int
    text: str = ""

    @classmethod
    def deny(cls, reason: str | None) -> Self:
        return cls(2, f"Not allowed: {reason}" if reason else "Not allowed by the rules, or by a person.")

    @classmethod
    def said(cls, decision: str, reason: str | None = None) -> Self:
        """In JSON."""
        told = {"hookEventName": "PreToolUse", "permissionDecision": decision}
        if reason is not None:
            told["permissionDecisionReason"] = reason
        return cls(0, json.dumps({"hookSpecificOutput": told}))

    def encode(self) -> bytes:
        return f"{self.code}\n{self.text}".encode()


def read_call(raw: bytes, describe: Describe, *, says_ask: bool) -> tuple[str, bytes]:
    """The agent's session id, and the params of the question; raises `BadCall`."""
    try:
        call = decode_object(raw)
    except Malformed as error:
        raise BadCall(f"The call is not an object in JSON ({error.message})") from error
    session, name, given = call.get("session_id"), call.get("tool_name"), call.get("tool_input")
    call_id = call.get("tool_call_id") or call.get("tool_use_id")
    if not isinstance(session, str) or not isinstance(name, str) or not isinstance(call_id, str) or not name:
        raise BadCall("The call lacks its session, its tool or its id")
    if not isinstance(given, dict):
        raise BadCall("The input of the call is not an object")
    tool = {
        "toolCallId": call_id,
        "title": name,
        "rawInput": given,
        **describe(name, given, str(call.get("cwd") or "")),
        "_meta": {"dragoman": {"toolName": name}},
    }
    unasked = {"dragoman": {"unasked": "rules" if says_ask else True}}
    question = {"sessionId": session, "toolCall": tool, "options": OPTIONS, "_meta": unasked}
    return session, msgspec.json.encode(question)


def read_answer(reply: Reply, *, says_ask: bool) -> Decision:
    if not reply.ok:
        return _denied(reply.as_error().message, says_ask=says_ask)
    answer = decode_object(reply.result)
    own, outcome = own_meta(answer), as_object(answer.get("outcome"))
    if own.get("decision") == "ask":
        return Decision.said("ask")
    if outcome.get("outcome") == "selected" and outcome.get("optionId") == "allow":
        return Decision(0)
    reason = own.get("reason")
    return _denied(reason if isinstance(reason, str) else None, says_ask=says_ask)


def _denied(reason: str | None, *, says_ask: bool) -> Decision:
    denied = Decision.deny(reason)
    return Decision.said("deny", denied.text) if says_ask else denied
