"""Answers that people had us remember, by REST."""

from __future__ import annotations

import asyncio

import msgspec

from dragoman.gateway.gateway import Gateway
from dragoman.server.api.operation import READING, Operation, Values
from dragoman.server.api.shapes import MemoryList, MemoryView
from dragoman.server.asgi import HttpError, Request, Response


class RememberedAnswers:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def operations(self) -> tuple[Operation, ...]:
        path = "/api/policy/remembered"
        # fmt: off
        return (
            Operation("GET", path, "Answers that people had us remember", self.every, MemoryList, does=READING),
            Operation(
                "DELETE", f"{path}/{{id}}", "Forget one; what it allowed is asked again", self.forget, status=204,
                does="_dragoman/forget",
                refusals={404: "Nothing is remembered under this id.", 409: "The file cannot be written."},
            ),
        )
        # fmt: on

    async def every(self, request: Request, values: Values) -> Response:
        kept = self._gateway.remembered
        views = [msgspec.convert(memory.facts(), MemoryView) for memory in kept.all()]
        return Response.json(MemoryList(views, kept.broken))

    async def forget(self, request: Request, values: Values) -> Response:
        from dragoman.policy.memory.pattern import NotRemembered

        kept = self._gateway.remembered
        known = next((memory for memory in kept.all() if memory.id == values["id"]), None)
        if known is not None:
            facts = {"by": request.identity.name, "remembered": known.facts()}
            self._gateway.audit.record("answer_forgotten", facts)
        try:
            gone = await asyncio.to_thread(kept.forget, values["id"])
        except NotRemembered as error:
            raise HttpError(409, str(error), code="not_stored") from error
        if gone is None:
            raise HttpError(404, "Nothing is remembered under this id.", code="unknown_memory")
        return Response(204)
