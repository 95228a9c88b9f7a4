"""One thing that can be asked of the API: the row that is routed, checked and documented."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from dragoman.gateway.access.identity import Role
from dragoman.server.asgi import HttpError, Request, Response

JSON = "application/json"

Values = Mapping[str, str]
"""What stands in the path where the row has a name in braces."""
Handler = Callable[[Request, Values], Awaitable[Response | None]]

_NAME = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Operation:
    method: str
    path: str
    summary: str
    handle: Handler
    answer: type[Any] | None = None
    """What a good answer holds; None for an empty one."""
    content: str = JSON
    """The content type of a good answer that is no JSON."""
    status: int = 200
    body: type[Any] | None = None
    role: Role = Role.OBSERVE
    query: Mapping[str, str] = field(default_factory=dict)
    """Parameters and what they mean; all of them may be left out."""
    refusals: Mapping[int, str] = field(default_factory=dict)
    """What may go wrong besides a bad token, role or request."""

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
            (each, values) for each in self.operations if (values := each.match(request.path)) is not None
        ]
        for operation, values in found:
            if operation.method == method:
                request.require(operation.role)
                return await operation.handle(request, values)
        if not found:
            raise HttpError(404, "There is nothing here; /api/docs lists what there is.")
        allowed = ", ".join(sorted({operation.method for operation, _ in found}))
        raise HttpError(405, f"This path takes {allowed}.", [("allow", allowed)])
