"""The audit over HTTP: find, count and export records, check the chains.

The role `control`, which works with all sessions, sees their records. The others, about tokens, logins and
configuration, are for `admin`.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta, Struct

from dragoman.gateway.access.identity import Role
from dragoman.server.api.audit_check import AuditCheck
from dragoman.server.api.operation import Operation, Values
from dragoman.server.asgi import HttpError, Request, Response
from dragoman.wire.timestamps import milliseconds, timestamp

if TYPE_CHECKING:
    from dragoman.audit.browse.page import Place
    from dragoman.audit.read import Query

MOST = 1000
"""Records of one answer."""
PIECE = 500
"""Records of an export that are read at once."""
NDJSON = "application/x-ndjson"
FILTERS = {
    "session": "Only this session.",
    "agent": "Only this agent.",
    "tool": "Only this tool.",
    "call": "Only this tool call, by its `toolCallId`.",
    "decision": "`allow`, `deny` or `ask`.",
    "by": "Only by this person or rule.",
    "kind": "Only records of this kind, such as `decision`.",
    "since": "Only since this time, ISO 8601.",
    "until": "Only before this time.",
    "unmediated": "`true`: only calls that ran without a decision.",
}
PAGE = {
    "limit": f"Most records, up to {MOST}; the latest are returned, the oldest first.",
    "cursor": "The records before: `nextCursor` of the page with later ones.",
}
EXPORTS = {"ndjson": NDJSON, "csv": "text/csv; charset=utf-8"}


class AuditRecords(Struct, rename="camel", omit_defaults=True):
    """Records of the audit, the oldest first."""

    records: Annotated[
        list[dict[str, Any]], Meta(description="Each has `id`, `at`, `kind` and the facts of its kind.")
    ]
    next_cursor: Annotated[
        str | None,
        Meta(
            description="Ask again with `cursor` set to it for what was before; absent when there is nothing. A search "
            "that takes long returns fewer records than `limit`, or none, and has one too."
        ),
    ] = None


class AuditReport(Struct, rename="camel"):
    """What a check of the audit found."""

    consistent: bool
    anchored_up_to: Annotated[
        str | None,
        Meta(
            description="No record from before this time was changed since its head was kept elsewhere; null without "
            "such copies."
        ),
    ]
    records: int
    problems: list[dict[str, Any]]
    notes: list[str]
    removed: Annotated[
        list[dict[str, Any]],
        Meta(
            description="Records removed by their age; `shown` if heads elsewhere show that they were that old."
        ),
    ]
    chains: list[dict[str, Any]]


class AuditApi:
    def __init__(self, folder: Path, anchors: list[str]) -> None:
        from dragoman.audit.browse.counts import Counts

        self._folder = folder
        self._counts = Counts()
        self._check = AuditCheck(folder, [Path(place[5:]) for place in anchors if place.startswith("file:")])

    @property
    def operations(self) -> tuple[Operation, ...]:
        does = "_dragoman/audit"
        # fmt: off
        return (
            Operation("GET", "/api/audit", "Records of the audit", self._find, AuditRecords, does=does,
                      query={**FILTERS, **PAGE}),
            Operation("GET", "/api/audit/counts", "How many records there are in each hour", self._count, does=does,
                      query=FILTERS, content=NDJSON),
            Operation("GET", "/api/audit/export", "Records of the audit as a file", self._export, does=does,
                      query={**FILTERS, "format": "`ndjson` (the default) or `csv`."}, content=NDJSON),
            Operation("GET", "/api/audit/records/{id}", "One record", self._one, dict, does=does,
                      query={"hash": "`true`: also its `hash`, the SHA-256 of its line as it was written."},
                      refusals={404: "There is no such record."}),
            Operation("POST", "/api/audit/verify", "Check that nothing was changed", self._verify, AuditReport,
                      does=does,
                      query={"progress": "`true`: a line of JSON now and then, `{records, of}`, at last `{report}`."},
                      refusals={503: "The check ended early; the log says why."}),
        )
        # fmt: on

    async def _find(self, request: Request, values: Values) -> Response:
        from dragoman.audit.browse.page import read_page

        asked, limit = _query(request), _limit(request.query("limit"))
        page = await asyncio.to_thread(read_page, self._folder, asked, limit, cursor_of(request))
        following = str(page.following) if page.following is not None else None
        return Response.json(AuditRecords(page.records, following))

    async def _count(self, request: Request, values: Values) -> None:
        """A line for each file that was counted: bytes read, of how many, and what it adds to each hour."""
        steps = self._counts.count(self._folder, _query(request))
        await _stream(request, NDJSON, (msgspec.json.encode(step) + b"\n" for step in steps))

    async def _export(self, request: Request, values: Values) -> None:
        from dragoman.audit.browse.table import as_csv, as_ndjson
        from dragoman.audit.read import query

        wanted = request.query("format") or "ndjson"
        if wanted not in EXPORTS:
            raise HttpError(400, "format is ndjson or csv.")
        records = query(self._folder, _query(request))
        lines = as_csv(records) if wanted == "csv" else as_ndjson(records)
        pieces = iter(lambda: "".join(islice(lines, PIECE)).encode(), b"")
        await _stream(request, EXPORTS[wanted], pieces, name=f"audit.{wanted}")

    async def _one(self, request: Request, values: Values) -> Response:
        from dragoman.audit.read import line_of
        from dragoman.audit.record import digest, read_record

        line = await asyncio.to_thread(line_of, self._folder, values["id"])
        if line is None:
            raise HttpError(404, "There is no such record.", code="unknown_record")
        found = {"id": values["id"], **read_record(line)}
        if request.query("hash") == "true":
            found["hash"] = digest(line)
        if not isinstance(found.get("session"), str):
            request.require(Role.ADMIN)
        return Response.json(found)

    async def _verify(self, request: Request, values: Values) -> Response | None:
        if request.query("progress") != "true":
            return Response.json(await self._check.report(request.wait_gone))
        await request.start(200, [("content-type", NDJSON)])
        async for line in self._check.lines(request.wait_gone):
            await request.write(line)
        await request.write(b"", more=False)
        return None


async def _stream(request: Request, content: str, pieces: Iterator[bytes], name: str = "") -> None:
    """Send what a thread reads piece by piece, until it ends or the client is gone."""
    headers = [("content-type", content)]
    if name:
        headers.append(("content-disposition", f'attachment; filename="{name}"'))
    await request.start(200, headers)
    gone = asyncio.ensure_future(request.wait_gone())
    try:
        while not gone.done() and (piece := await asyncio.to_thread(next, pieces, b"")):
            await request.write(piece)
        await request.write(b"", more=False)
    finally:
        gone.cancel()


def cursor_of(request: Request) -> Place | None:
    """Where the page that is asked for ends; None: at the latest record."""
    from dragoman.audit.browse.page import BadPlace, read_place

    cursor = request.query("cursor")
    try:
        return read_place(cursor) if cursor else None
    except BadPlace as error:
        raise HttpError(400, "cursor is not one of this list.") from error


def _query(request: Request) -> Query:
    from dragoman.audit.read import Query

    asked: dict[str, Any] = {name: value for name in FILTERS if (value := request.query(name))}
    asked |= {name: _time(name, asked[name]) for name in ("since", "until") if name in asked}
    asked["unmediated"] = asked.get("unmediated") == "true"
    return Query(**asked, of_sessions=request.identity.role < Role.ADMIN)


def _time(name: str, text: str) -> str:
    found = milliseconds(text)
    if not found:
        raise HttpError(400, f"{name} is a time such as 2026-11-18T03:00:00Z.")
    return timestamp(found)


def _limit(text: str | None) -> int:
    if text is None:
        return 100
    if not re.fullmatch("[0-9]{1,9}", text) or not 1 <= int(text) <= MOST:
        raise HttpError(400, f"limit is a number from 1 to {MOST}.")
    return int(text)
