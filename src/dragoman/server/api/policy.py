"""The policy: rules in force, recent decisions, trying a line, and why a call was decided as it was."""

from __future__ import annotations

import os
from pathlib import Path

from dragoman.config.root import find_root
from dragoman.gateway.delivery.recent_decisions import recent_decisions, records_of_call
from dragoman.gateway.gateway import Gateway
from dragoman.gateway.json_types import JsonObject, as_object
from dragoman.gateway.ports.store import BadCursor
from dragoman.gateway.session.policy.shown import show_rules, try_line
from dragoman.server.api.operation import READING, Operation, Values
from dragoman.server.api.reading import read
from dragoman.server.api.shapes import DecisionPage, Explanation, PolicyTest, PolicyView, VerdictView
from dragoman.server.asgi import HttpError, Request, Response

PAGE_SESSIONS = 10
"""Sessions whose decisions are on one page: each journal is read from its end."""
MOST_DECISIONS = 200
"""Decisions of one page; the latest of its sessions."""


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
                "GET", "/api/policy/decisions", "Recent decisions, those of the sessions used last first",
                self.decisions, DecisionPage,
                query={
                    "session": "Only decisions of this session.",
                    "cursor": "The next page: `nextCursor` of the one before.",
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
        wanted, store = request.query("session"), self._gateway.store
        if store is None:
            return Response.json(DecisionPage([]))
        if wanted is not None:
            await self._require(wanted)
            return Response.json(DecisionPage((await recent_decisions(store, wanted))[:MOST_DECISIONS]))
        try:
            page = await self._gateway.directory.list(
                cwd=None, agent=None, cursor=request.query("cursor"), limit=PAGE_SESSIONS
            )
        except BadCursor as error:
            raise HttpError(400, "cursor is not one of this list.") from error
        found: list[JsonObject] = []
        for session in page.sessions:
            found += await recent_decisions(store, session.id)
        found.sort(key=lambda one: str(one["time"]), reverse=True)
        return Response.json(DecisionPage(found[:MOST_DECISIONS], page.next_cursor))

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
        records = await records_of_call(store, values["id"], values["call"]) if store is not None else []
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
    if cwd is not None and not Path(cwd).is_absolute():
        raise HttpError(400, "cwd is the absolute path of a folder.")
    return str(find_root(Path(os.path.realpath(cwd or Path.cwd()))))
