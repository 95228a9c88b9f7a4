"""Codex's approval requests as permission questions, in its present and its former protocol (G-161)."""

from __future__ import annotations

from dataclasses import dataclass

from dragoman.agents.codex.items import bare_command, diffs
from dragoman.agents.native.permission import Choice, choice, picked
from dragoman.wire.json_types import JsonObject, as_object, objects

COMMAND = "item/commandExecution/requestApproval"
FILE_CHANGE = "item/fileChange/requestApproval"
PERMISSIONS = "item/permissions/requestApproval"
LEGACY_COMMAND = "execCommandApproval"
LEGACY_PATCH = "applyPatchApproval"
COMMANDS = frozenset({COMMAND, LEGACY_COMMAND})


@dataclass(frozen=True, slots=True)
class Words:
    once: str
    session: str
    rule: str
    amendment: str
    network: str
    no: object
    cancel: str


PRESENT = Words(
    "accept",
    "acceptForSession",
    "acceptWithExecpolicyAmendment",
    "execpolicy_amendment",
    "applyNetworkPolicyAmendment",
    "decline",
    "cancel",
)
FORMER = Words(
    "approved",
    "approved_for_session",
    "approved_execpolicy_amendment",
    "proposed_execpolicy_amendment",
    "network_policy_amendment",
    "denied",
    "abort",
)
WORDS: dict[str, Words] = {
    COMMAND: PRESENT,
    FILE_CHANGE: PRESENT,
    PERMISSIONS: PRESENT,
    LEGACY_COMMAND: FORMER,
    LEGACY_PATCH: FORMER,
}


def choices(method: str, params: JsonObject) -> list[Choice]:
    """Once, in this session, by each rule that Codex proposes, or no; limited to `availableDecisions`, if given.

    Codex does not list `decline` there (0.166), but accepts it, and the turn goes on as with other agents.
    """
    if method == PERMISSIONS:
        return _grants(params)
    words = WORDS[method]
    found = [
        choice("accept", "Allow once", "allow_once", words.once),
        choice("accept_session", "Allow in this session", "allow_always", words.session),
        *_rules(words, params),
    ]
    no = choice("decline", "Reject", "reject_once", words.no)
    taken = params.get("availableDecisions")
    if not isinstance(taken, list) or not taken:
        return [*found, no]
    return [*(offer for offer in found if _kind(offer.answer) in map(_kind, taken)), no]


def answer(method: str, offered: list[Choice], outcome: object) -> JsonObject:
    """The answer to Codex; any outcome but a selected choice ends the turn."""
    if method == PERMISSIONS:
        return as_object(picked(offered, outcome, NOTHING_GRANTED))
    return {"decision": picked(offered, outcome, WORDS[method].cancel)}


def item_id(params: JsonObject) -> str:
    """The id of the tool call that the request is about."""
    return str(params.get("itemId") or params.get("callId") or "")


def thread_id(params: JsonObject) -> str:
    return str(params.get("threadId") or params.get("conversationId") or "")


def asked_tool(method: str, params: JsonObject) -> JsonObject:
    """The tool call as far as the request describes it, for a question without a preceding item."""
    if method == PERMISSIONS:
        return {"kind": "other", "title": "More permissions", "rawInput": params.get("permissions")}
    command = params.get("command")
    if isinstance(command, list):
        command = " ".join(map(str, command))
    tool: JsonObject = {"kind": "execute" if method in COMMANDS else "edit"}
    if command:
        tool["title"] = bare_command(str(command))
        tool["rawInput"] = {"command": command, "cwd": params.get("cwd")}
    changes = as_object(params.get("fileChanges"))
    if changes:
        tool["title"] = f"Edit {', '.join(changes)}"
        tool["locations"] = [{"path": path} for path in changes]
        tool["content"] = [
            diff for path, change in changes.items() for diff in _former_diffs(path, as_object(change))
        ]
    return tool


def reasons(params: JsonObject) -> list[JsonObject]:
    """Why Codex asks, as content of the call."""
    host = as_object(params.get("networkApprovalContext")).get("host")
    told = [params.get("reason"), f"It wants to reach {host}" if host else None]
    return [{"type": "content", "content": {"type": "text", "text": str(text)}} for text in told if text]


def beyond(params: JsonObject) -> JsonObject:
    """What is asked for besides the call itself, for rules: a host to reach, and wider permissions."""
    network, wider = as_object(params.get("networkApprovalContext")), params.get("additionalPermissions")
    asked: JsonObject = {"url": str(network["host"])} if network.get("host") else {}
    return {**asked, "additionalPermissions": wider} if wider else asked


NOTHING_GRANTED: JsonObject = {"permissions": {}, "scope": "turn"}


def _grants(params: JsonObject) -> list[Choice]:
    wanted = as_object(params.get("permissions"))
    return [
        choice("accept", "Allow in this turn", "allow_once", {"permissions": wanted, "scope": "turn"}),
        choice(
            "accept_session",
            "Allow in this session",
            "allow_always",
            {"permissions": wanted, "scope": "session"},
        ),
        choice("decline", "Reject", "reject_once", NOTHING_GRANTED),
    ]


def _rules(words: Words, params: JsonObject) -> list[Choice]:
    found = []
    amendment = params.get("proposedExecpolicyAmendment")
    if isinstance(amendment, list) and amendment:
        rule = bare_command(" ".join(map(str, amendment)))
        decision: JsonObject = {words.rule: {words.amendment: amendment}}
        found.append(choice("accept_rule", f"Always allow `{rule}`", "allow_always", decision))
    for number, each in enumerate(objects(params.get("proposedNetworkPolicyAmendments")), 1):
        allows = each.get("action") == "allow"
        name = f"Always {'allow' if allows else 'refuse'} {each.get('host')}"
        decision = {words.network: {"network_policy_amendment": each}}
        found.append(
            choice(f"network_{number}", name, "allow_always" if allows else "reject_always", decision)
        )
    return found


def _kind(decision: object) -> object:
    """The kind of a decision, without its details."""
    return next(iter(decision), None) if isinstance(decision, dict) else decision


def _former_diffs(path: str, change: JsonObject) -> list[JsonObject]:
    """Diffs of `{"add": {"content"}}`, `{"delete": …}`, `{"update": {"unified_diff", "move_path"}}`, or flat."""
    kind = str(change.get("type") or next(iter(change), ""))
    told = change if "type" in change else as_object(change.get(kind))
    text = told.get("unified_diff") or told.get("content") or ""
    return diffs({"path": path, "kind": {"type": kind}, "diff": text})
