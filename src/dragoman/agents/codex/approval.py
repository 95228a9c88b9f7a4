"""Codex's approval requests as permission questions, in its present words and in its former ones (G-161)."""

from __future__ import annotations

from dataclasses import dataclass

from dragoman.agents.codex.items import bare_command
from dragoman.agents.json_types import JsonObject
from dragoman.agents.native.permission import Choice, choice, picked

COMMAND = "item/commandExecution/requestApproval"
FILE_CHANGE = "item/fileChange/requestApproval"
LEGACY_COMMAND = "execCommandApproval"
LEGACY_PATCH = "applyPatchApproval"


@dataclass(frozen=True, slots=True)
class Words:
    once: str
    session: str
    rule: str
    amendment: str
    no: object
    cancel: str


PRESENT = Words(
    "accept", "acceptForSession", "acceptWithExecpolicyAmendment", "execpolicy_amendment", "decline", "cancel"
)
FORMER = Words(
    "approved",
    "approved_for_session",
    "approved_execpolicy_amendment",
    "proposed_execpolicy_amendment",
    "denied",
    "abort",
)
WORDS: dict[str, Words] = {
    COMMAND: PRESENT,
    FILE_CHANGE: PRESENT,
    LEGACY_COMMAND: FORMER,
    LEGACY_PATCH: FORMER,
}


def choices(method: str, params: JsonObject) -> list[Choice]:
    words = WORDS[method]
    found = [
        choice("accept", "Allow once", "allow_once", words.once),
        choice("accept_session", "Allow in this session", "allow_always", words.session),
    ]
    amendment = params.get("proposedExecpolicyAmendment")
    if isinstance(amendment, list) and amendment:
        rule = bare_command(" ".join(map(str, amendment)))
        decision = {words.rule: {words.amendment: amendment}}
        found.append(choice("accept_rule", f"Always allow `{rule}`", "allow_always", decision))
    return [*found, choice("decline", "Reject", "reject_once", words.no)]


def decision(method: str, offered: list[Choice], outcome: object) -> object:
    """What Codex is told; anything but a plain choice ends the turn."""
    return picked(offered, outcome, WORDS[method].cancel)


def item_id(params: JsonObject) -> str:
    """The tool call that is asked about."""
    return str(params.get("itemId") or params.get("callId") or "")


def thread_id(params: JsonObject) -> str:
    return str(params.get("threadId") or params.get("conversationId") or "")


def asked_tool(method: str, params: JsonObject) -> JsonObject:
    """What the request itself tells about the call, for a question without an item before it."""
    command = params.get("command")
    if isinstance(command, list):
        command = " ".join(map(str, command))
    tool: JsonObject = {"kind": "execute" if method in (COMMAND, LEGACY_COMMAND) else "edit"}
    if command:
        tool["title"] = bare_command(str(command))
        tool["rawInput"] = {"command": command, "cwd": params.get("cwd")}
    return tool


def reasons(params: JsonObject) -> list[JsonObject]:
    """Why Codex asks, as content of the call."""
    reason = params.get("reason")
    return [{"type": "content", "content": {"type": "text", "text": str(reason)}}] if reason else []
