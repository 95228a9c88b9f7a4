"""The policy: rules in force, recent decisions, trying a line, and why a call was decided as it was."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

from dragoman.audit.browse.table import about
from dragoman.config.root import find_root
from dragoman.gateway.delivery.decisions import decisions_of
from dragoman.gateway.gateway import Gateway
from dragoman.gateway.json_types import JsonObject, as_object
from dragoman.gateway.session.policy.shown import show_rules, try_line
from dragoman.server.api.audit import cursor_of
from dragoman.server.api.operation import READING, Operation, Values
from dragoman.server.api.reading import read
from dragoman.server.api.shapes import DecisionPage, Explanation, PolicyTest, PolicyView, VerdictView
from dragoman.server.asgi import HttpError, Request, Response

PAGE = 100
"""Decisions of one page."""


class PolicyApi:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def operations(self) -> tuple[Operation, ...]:
        cwd = {"cwd": "The folder of the session; unset: the one where the gateway was started."}
        # fmt: off
        return (
            Operation(
                "GET", "/api/policy", "The rules in force, in the order of their authority", self.rules, PolicyView,
                query=cwd,
                does=READING,
            ),
            Operation(
                "GET", "/api/policy/decisions", "Decisions about tool calls, the latest first",
                self.decisions, DecisionPage, refusals={409: "No audit is kept."},
                query={
                    "session": "Only decisions of this session.",
                    "cursor": "Those before: `nextCursor` of the page with later ones.",
                },
                does=READING,
            ),
            Operation(
                "POST", "/api/policy/test", "Decide about a shell line without running it", self.test, VerdictView,
                does="policy/test", body=PolicyTest,
            ),
            Operation(
                "GET", "/api/sessions/{id}/calls/{call}/explain", "How a tool call was decided, and why",
                self.explain, Explanation,
                refusals={404: "There is no such session, or nothing was decided about this call."},
                does=READING,
            ),
        )
        # fmt: on

    async def rules(self, request: Request, values: Values) -> Response:
        workspace = _workspace(request.query("cwd"))
        facts = show_rules(self._gateway.policy_for(workspace))
        trouble = self._gateway.policy_trouble(workspace)
        return Response.json(PolicyView(workspace=workspace, trouble=trouble, **facts))

    async def decisions(self, request: Request, values: Values) -> Response:
        """From the audit: it has the decisions of all sessions in the order of time, of deleted ones too."""
        from dragoman.audit.browse.page import read_page
        from dragoman.audit.read import Query

        folder, session = self._gateway.audit.folder, request.query("session")
        if folder is None:
            message = (
                "Decisions are listed from the audit, which is not kept here (audit.enabled). "
                "`dragoman policy explain SESSION` tells how the calls of a session were decided."
            )
            raise HttpError(409, message, code="no_audit")
        asked = Query(session=session or None, decided=True, of_sessions=True)
        page = await asyncio.to_thread(read_page, folder, asked, PAGE, cursor_of(request))
        if session and not page.records:
            await self._require(session)
        following = str(page.following) if page.following is not None else None
        return Response.json(DecisionPage([_decision(found) for found in reversed(page.records)], following))

    async def test(self, request: Request, values: Values) -> Response:
        given = await read(request, PolicyTest)
        if not (given.command or given.kind or given.tool):
            raise HttpError(400, "Nothing to decide: give command, kind or tool.")
        workspace = _workspace(given.cwd)
        ours = self._gateway.config.policy.remember == "gateway" and not given.without_remembered
        verdict = try_line(
            self._gateway.policy_for(workspace),
            given.command,
            self._gateway.remembered if ours else None,
            cwd=os.path.realpath(given.cwd or Path.cwd()),
            workspace=workspace,
            kind=given.kind or "execute",
            agent=given.agent,
            mode=given.mode,
            tool=given.tool,
            session=given.session,
        )
        return Response.json(verdict)

    async def explain(self, request: Request, values: Values) -> Response:
        await self._require(values["id"])
        store = self._gateway.store
        about_call = await decisions_of(store, values["id"], values["call"]) if store is not None else []
        records = [record for decided in about_call for record in decided.records()]
        if not records:
            message = "Nothing was decided about this call: it was not asked about, or its journal does not have it."
            raise HttpError(404, message, code="unknown_call")
        tool = next((found for one in records if (found := as_object(one.get("toolCall")))), {})
        session = self._gateway.sessions.get(values["id"])
        now = None
        if session is not None and not session.follows:
            verdict = session.policy.verdict(tool)
            now = {"decision": verdict.decision, "rule": verdict.rule, "why": verdict.why, "act": verdict.act}
        return Response.json(Explanation(values["id"], values["call"], records, now))

    async def _require(self, session_id: str) -> None:
        if await self._gateway.directory.get(session_id) is None:
            raise HttpError(404, "There is no such session.", code="unknown_session")


def _workspace(cwd: str | None) -> str:
    if cwd is not None and (not Path(cwd).is_absolute() or "\0" in cwd):
        raise HttpError(400, "cwd is the absolute path of a folder.")
    return str(find_root(Path(os.path.realpath(cwd or Path.cwd()))))


def _decision(found: dict[str, Any]) -> JsonObject:
    """A record of the audit as a decision."""
    by_rule = found["kind"] == "decision"
    shown: JsonObject = {
        "id": found["id"],
        "session": found.get("session"),
        "call": found.get("call"),
        "time": found["at"],
        "title": about(found) or found.get("tool") or found.get("toolKind") or "a tool call",
        "decision": found.get("decision") or "cancelled",
        "rule": found.get("by") if by_rule else None,
        "by": None if by_rule else found.get("identity") or found.get("by"),
        "why": found.get("why"),
        "act": found.get("act"),
        "approvals": found.get("approvals"),
    }
    return {name: value for name, value in shown.items() if value is not None}
