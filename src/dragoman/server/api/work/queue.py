"""The prompts that wait in a session, by REST."""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman.gateway.gateway import Gateway
from dragoman.gateway.json_types import JsonObject, encode
from dragoman.gateway.session.prompts.requests import EDIT, QUEUE, WITHDRAW
from dragoman.rpc.request import Reply
from dragoman.server.api.operation import Operation, Values
from dragoman.server.api.reading import read
from dragoman.server.api.shapes import Prompt
from dragoman.server.asgi import HttpError, Request, Response
from dragoman.server.fronts.shared_client import SharedClients

NOT_QUEUED = {404: "There is no such session, or this prompt does not wait any more."}


class QueuedView(msgspec.Struct, rename="camel"):
    """A prompt that waits for the end of a turn."""

    id: str
    prompt: list[dict[str, Any]]
    """Content blocks, as in ACP."""
    prompted_by: str
    """The token that sent it, or edited it last; `local` for a client on this machine."""
    edited: bool
    own: bool
    """It came with the token of this request, by REST."""
    held: str | msgspec.UnsetType = msgspec.UNSET
    """Why a message of a page is not sent when its turn comes."""


class QueueView(msgspec.Struct):
    """The prompts that wait, the next one first."""

    queue: list[QueuedView]


class QueueApi:
    def __init__(self, gateway: Gateway, gateway_clients: SharedClients) -> None:
        self._gateway = gateway
        self._gateway_clients = gateway_clients

    def operations(self) -> tuple[Operation, ...]:
        every = "/api/sessions/{id}/queue"
        one = f"{every}/{{prompt}}"
        # fmt: off
        return (
            Operation(
                "GET", every, "The prompts and messages of pages that wait for the end of a turn", self.every,
                QueueView, does=QUEUE, refusals={404: "There is no such session."},
            ),
            Operation(
                "PATCH", one, "Change a prompt that waits; it is sent in the name of this token then", self.edit,
                status=204, body=Prompt, does=EDIT, refusals=NOT_QUEUED,
            ),
            Operation(
                "DELETE", one, "Withdraw a prompt that waits; it is answered with `cancelled`", self.withdraw,
                status=204, does=WITHDRAW, refusals=NOT_QUEUED,
            ),
        )
        # fmt: on

    async def every(self, request: Request, values: Values) -> Response:
        reply = await self._ask(request, values, QUEUE, {})
        if reply is None:
            return Response.json(QueueView([]))
        return Response(200, reply.result, "application/json")

    async def edit(self, request: Request, values: Values) -> Response:
        wanted = (await read(request, Prompt)).prompt
        blocks = [{"type": "text", "text": wanted}] if isinstance(wanted, str) else wanted
        return await self._change(request, values, EDIT, {"prompt": blocks})

    async def withdraw(self, request: Request, values: Values) -> Response:
        return await self._change(request, values, WITHDRAW, {})

    async def _change(self, request: Request, values: Values, method: str, params: JsonObject) -> Response:
        if await self._ask(request, values, method, {"id": values["prompt"], **params}) is None:
            raise HttpError(404, "This prompt does not wait any more.", code="not_queued")
        return Response(204)

    async def _ask(self, request: Request, values: Values, method: str, params: JsonObject) -> Reply | None:
        """Ask the session's owner; None for a session that is not live, where nothing waits."""
        kept = await self._gateway.directory.get(values["id"])
        if kept is None:
            raise HttpError(404, "There is no such session.", code="unknown_session")
        if not kept.live and kept.id not in self._gateway.sessions:
            return None
        client = self._gateway_clients.get(request.identity, None)
        await client.ready()
        reply = await client.fetch(method, encode({"sessionId": kept.id, **params}), kept.id)
        if not reply.ok:
            raise reply.as_error()
        return reply
