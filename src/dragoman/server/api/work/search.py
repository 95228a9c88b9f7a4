"""REST for searching in what was said."""

from __future__ import annotations

from dragoman.gateway.gateway import Gateway
from dragoman.gateway.ports.search import MOST_HITS, BadQuery, Found, SearchUnavailable, Wanted
from dragoman.server.api.operation import READING, Operation, Values
from dragoman.server.asgi import HttpError, Request, Response
from dragoman.wire.timestamps import milliseconds

LONGEST = 1000
"""Characters of a search."""
_DEFAULT = 20


class SearchApi:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def operations(self) -> tuple[Operation, ...]:
        query = {
            "q": 'Words, "phrases in quotation marks" and beginnings of words*; all must occur in one message.',
            "agent": "Only sessions of this agent.",
            "cwd": "Only sessions in this folder or below it.",
            "since": "Only what was said since then: ISO 8601.",
            "order": "`newest` (the default) or `best`.",
            "limit": f"Most hits, up to {MOST_HITS}; {_DEFAULT} by default.",
        }
        refusals = {
            409: "Nothing is searched (sessions.search, sessions.journal).",
            503: "It cannot be read.",
        }
        summary = "Where something was said, the newest first"
        return (
            Operation(
                "GET", "/api/search", summary, self._find, Found, query=query, refusals=refusals, does=READING
            ),
        )

    async def _find(self, request: Request, values: Values) -> Response:
        search = self._gateway.search
        if search is None:
            text = "There is no index to search in: sessions.search or sessions.journal is off."
            raise HttpError(409, text, code="no_search")
        try:
            return Response.json(await search.find(_wanted(request)))
        except BadQuery as error:
            raise HttpError(400, f"q: {error}.") from error
        except SearchUnavailable as error:
            raise HttpError(503, str(error), code="search_unavailable") from error


def _wanted(request: Request) -> Wanted:
    text = request.query("q") or ""
    if len(text) > LONGEST:
        raise HttpError(400, f"q has more than {LONGEST} characters.")
    since, order, limit = request.query("since"), request.query("order"), request.query("limit")
    moment = milliseconds(since) if since else None
    if moment == 0:
        raise HttpError(400, "since is a time such as 2026-11-18T08:00:00Z.")
    if order not in (None, "", "newest", "best"):
        raise HttpError(400, "order is newest or best.")
    if limit and not (limit.isdigit() and 1 <= int(limit) <= MOST_HITS):
        raise HttpError(400, f"limit is a number from 1 to {MOST_HITS}.")
    return Wanted(
        text=text,
        agent=request.query("agent") or None,
        cwd=request.query("cwd") or None,
        since=moment,
        best=order == "best",
        limit=int(limit) if limit else _DEFAULT,
    )
