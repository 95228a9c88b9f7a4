"""Questions of Codex, or of an MCP server through it, to the user: an ACP elicitation, else choices."""

from __future__ import annotations

import logging

from dragoman.agents.adapter import Upstream
from dragoman.agents.native import permission
from dragoman.wire.errors import RpcError
from dragoman.wire.json_types import JsonObject, as_object, objects

log = logging.getLogger(__name__)

QUESTIONS = "item/tool/requestUserInput"
MCP_FORM = "mcpServer/elicitation/request"
METHODS = frozenset({QUESTIONS, MCP_FORM})
CANCELLED: JsonObject = {"action": "cancel", "content": None, "_meta": None}


async def answer(handle: Upstream, session_id: str, method: str, params: JsonObject) -> JsonObject:
    """Ask the user; returns the answer to Codex."""
    if method == MCP_FORM:
        return await _form(handle, session_id, params)
    return {"answers": await _questions(handle, session_id, params)}


def nothing(method: str) -> JsonObject:
    """The answer to Codex if the user gives none."""
    return CANCELLED if method == MCP_FORM else {"answers": {}}


async def _form(handle: Upstream, session_id: str, params: JsonObject) -> JsonObject:
    asked = {name: params[name] for name in ("mode", "message", "requestedSchema", "url", "elicitationId")
             if params.get(name) is not None}  # fmt: skip
    try:
        given = await handle.ask("elicitation/create", {"sessionId": session_id, **asked})
    except RpcError as error:
        log.info("no client can answer the question of an MCP server: %s", error)
        return {**CANCELLED, "action": "decline"}
    return {"action": given.get("action", "cancel"), "content": given.get("content"), "_meta": None}


async def _questions(handle: Upstream, session_id: str, params: JsonObject) -> JsonObject:
    questions = objects(params.get("questions"))
    asked = {"sessionId": session_id, "mode": "form", "message": _message(questions)}
    try:
        given = await handle.ask("elicitation/create", {**asked, "requestedSchema": _schema(questions)})
    except RpcError:
        return await _choices(handle, session_id, str(params.get("itemId")), questions)
    content = as_object(given.get("content"))
    return {id: {"answers": [str(value)]} for id, value in content.items() if value not in (None, "")}


def _message(questions: list[JsonObject]) -> str:
    return "\n".join(str(question.get("question")) for question in questions)


def _schema(questions: list[JsonObject]) -> JsonObject:
    properties: JsonObject = {}
    for question in questions:
        field: JsonObject = {
            "type": "string",
            "title": str(question.get("header") or question.get("question")),
        }
        field["description"] = str(question.get("question"))
        labels = [str(option.get("label")) for option in objects(question.get("options"))]
        if labels and not question.get("isOther"):
            field["enum"] = labels
        elif labels:
            field["description"] += f" ({', '.join(labels)}, or something else)"
        properties[str(question.get("id"))] = field
    return {"type": "object", "properties": properties, "required": list(properties)}


async def _choices(handle: Upstream, session_id: str, item: str, questions: list[JsonObject]) -> JsonObject:
    """For clients without elicitation: ask one question after the other, skipping those without options."""
    answers: JsonObject = {}
    for question in questions:
        labels = [str(option.get("label")) for option in objects(question.get("options"))]
        offered = [
            permission.choice(f"answer_{number}", label, "allow_once", label)
            for number, label in enumerate(labels)
        ]
        tool = {
            "toolCallId": item,
            "title": str(question.get("question")),
            "kind": "other",
            "status": "pending",
        }
        refusal = permission.choice("decline", "Do not answer", "reject_once", None)
        outcome = await permission.ask(handle, session_id, tool, [*offered, refusal]) if labels else None
        label = permission.picked(offered, outcome, None)
        if label is not None:
            answers[str(question.get("id"))] = {"answers": [label]}
    return answers
