"""REST for the ledger of tokens and cost."""

from __future__ import annotations

from typing import Any

from dragoman.gateway.gateway import Gateway
from dragoman.gateway.ports.store import StoreError
from dragoman.gateway.ports.usage import BY, Report, Wanted
from dragoman.server.api.operation import READING, Operation, Values
from dragoman.server.asgi import HttpError, Request, Response
from dragoman.wire.timestamps import milliseconds, timestamp

_FILTERS = {
    "agent": "Only this agent.",
    "model": "Only this model.",
    "session": "Only this session; the ledger keeps those that were deleted.",
    "workspace": "Only this workspace.",
    "identity": "Only turns of this token's name, or of `local`.",
}
_TIMES = {"since": "Only turns that ended then or later: ISO 8601.", "until": "Only turns that ended before."}


class UsageApi:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def operations(self) -> tuple[Operation, ...]:
        query = {"by": f"What each group is about: {', '.join(BY)}; agent by default.", **_TIMES, **_FILTERS}
        refusals = {409: "Nothing is kept (sessions.journal).", 503: "The ledger cannot be read."}
        summary = "Tokens and cost of turns, summed up"
        return (
            Operation(
                *("GET", "/api/usage", summary, self._report),
                answer=Report,
                query=query,
                refusals=refusals,
                does=READING,
            ),
        )

    async def _report(self, request: Request, values: Values) -> Response:
        ledger = self._gateway.usage
        wanted = _wanted(request)
        if ledger is None:
            raise HttpError(409, "There is no ledger: sessions.journal is off.", code="no_ledger")
        try:
            return Response.json(await ledger.report(wanted))
        except StoreError as error:
            raise HttpError(503, str(error), code=error.code) from error


def _wanted(request: Request) -> Wanted:
    by = request.query("by") or "agent"
    if by not in BY:
        raise HttpError(400, f"by is one of {', '.join(BY)}.")
    asked: dict[str, Any] = {"by": by, **{name: request.query(name) or None for name in _FILTERS}}
    for name in _TIMES:
        text = request.query(name)
        moment = milliseconds(text) if text else None
        if moment is not None and moment <= 0:
            raise HttpError(400, f"{name} is a time such as 2026-11-18T08:00:00Z.")
        asked[name] = timestamp(moment) if moment is not None else None
    return Wanted(**asked)
