"""The audit over HTTP: find records, check the chains."""

from __future__ import annotations

import asyncio
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct

from dragoman.server.api.operation import Operation, Values
from dragoman.server.asgi import HttpError, Request, Response

MOST = 1000
"""Records of one answer."""
FILTERS = {
    "session": "Only this session.",
    "agent": "Only this agent.",
    "tool": "Only this tool.",
    "decision": "`allow`, `deny` or `ask`.",
    "by": "Only by this person or rule.",
    "kind": "Only records of this kind, such as `decision`.",
    "since": "Only since this time, ISO 8601.",
    "until": "Only before this time.",
    "unmediated": "`true`: only calls that ran without a decision.",
    "limit": f"Most records, up to {MOST}; the latest are returned, the oldest first.",
}


class AuditRecords(Struct):
    """Records of the audit, the oldest first."""

    records: Annotated[
        list[dict[str, Any]], Meta(description="Each has `id`, `at`, `kind` and the facts of its kind.")
    ]


class AuditReport(Struct, rename="camel"):
    """What a check of the audit found."""

    consistent: bool
    anchored_up_to: Annotated[
        str | None,
        Meta(description="Nothing before this time was changed; null without copies of heads elsewhere."),
    ]
    records: int
    problems: list[dict[str, Any]]
    notes: list[str]
    chains: list[dict[str, Any]]


class AuditApi:
    def __init__(self, folder: Path, anchors: list[str]) -> None:
        self._folder = folder
        self._anchors = [Path(place[5:]) for place in anchors if place.startswith("file:")]
        self._checking = asyncio.Lock()

    @property
    def operations(self) -> tuple[Operation, ...]:
        # fmt: off
        return (
            Operation("GET", "/api/audit", "Records of the audit", self._find, AuditRecords, does="_dragoman/audit",
                      query=FILTERS),
            Operation("GET", "/api/audit/records/{id}", "One record", self._one, dict, does="_dragoman/audit",
                      refusals={404: "There is no such record."}),
            Operation("POST", "/api/audit/verify", "Check that nothing was changed", self._verify, AuditReport,
                      does="_dragoman/audit"),
        )
        # fmt: on

    async def _find(self, request: Request, values: Values) -> Response:
        from dragoman.audit.read import Query, latest, query

        asked = {name: value for name in FILTERS if (value := request.query(name))}
        limit = _limit(asked.pop("limit", None))
        unmediated = asked.pop("unmediated", "") == "true"
        wanted = Query(**asked, unmediated=unmediated)

        def find() -> list[dict[str, Any]]:
            if wanted.session is not None:
                return list(islice(query(self._folder, wanted), limit))
            return latest(self._folder, limit, wanted)

        return Response.json(AuditRecords(await asyncio.to_thread(find)))

    async def _one(self, request: Request, values: Values) -> Response:
        from dragoman.audit.read import show

        found = await asyncio.to_thread(show, self._folder, values["id"])
        if found is None:
            raise HttpError(404, "There is no such record.", code="unknown_record")
        return Response.json(found)

    async def _verify(self, request: Request, values: Values) -> Response:
        from dragoman.audit.anchors import read_anchor
        from dragoman.audit.verify import verify

        def check() -> dict[str, Any]:
            heads = (line for path in self._anchors if path.exists() for line in read_anchor(path))
            return verify(self._folder, heads).facts()

        async with self._checking:  # one at a time: it reads everything
            return Response.json(await asyncio.to_thread(check))


def _limit(text: str | None) -> int:
    if text is None:
        return 100
    if not text.isdigit() or not 1 <= int(text) <= MOST:
        raise HttpError(400, f"limit is a number from 1 to {MOST}.")
    return int(text)
