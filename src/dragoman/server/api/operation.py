"""One operation of the API: a table row for routing, role checks and documentation."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from dragoman.gateway.access.identity import Role, role_for
from dragoman.server.asgi import HttpError, Request, Response

JSON = "application/json"

Values = Mapping[str, str]
"""Values of the path parameters, by their names in braces."""
Handler = Callable[[Request, Values], Awaitable[Response | None]]

READING = "session/list"
"""`Operation.does` of what every role may read."""
_NAME = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Operation:
    method: str
    path: str
    summary: str
    handle: Handler
    does: str = field(kw_only=True)
    """The method of the gateway that it stands for, which says the role that it needs."""
    answer: type[Any] | None = None
    """Type of the body of a successful response; None if there is no JSON body."""
    content: str = JSON
    """Content type of a successful response."""
    status: int = 200
    body: type[Any] | None = None
    query: Mapping[str, str] = field(default_factory=dict)
    """Query parameters and their meaning; all are optional."""
    refusals: Mapping[int, str] = field(default_factory=dict)
    """Error statuses and their causes, besides a bad token, role or request."""

    @property
    def role(self) -> Role:
        return role_for(self.does)

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(_NAME.findall(self.path))

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(_NAME.sub(r"(?P<\1>[^/]+)", self.path))

    def match(self, path: str) -> Values | None:
        found = self._pattern.fullmatch(path)
        return found.groupdict() if found is not None else None


class Routes:
    def __init__(self, operations: tuple[Operation, ...]) -> None:
        self.operations = operations

    async def answer(self, request: Request) -> Response | None:
        method = "GET" if request.method == "HEAD" else request.method
        found = [
            (known, values) for known in self.operations if (values := known.match(request.path)) is not None
        ]
        for operation, values in found:
            if operation.method == method:
                request.require(operation.role)
                return await operation.handle(request, values)
        if not found:
            raise HttpError(404, "There is no such path; /api/docs lists all.")
        allowed = ", ".join(sorted({operation.method for operation, _ in found}))
        raise HttpError(405, f"This path takes {allowed}.", [("allow", allowed)])
