"""The way back in a conversation, by REST: its messages, rewind, and sending a message again."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from dragoman.gateway.gateway import Gateway
from dragoman.gateway.json_types import decode_object
from dragoman.gateway.lifecycle.rewinding import MESSAGES, REWIND, MessageList, RewindWish, Rewound
from dragoman.gateway.ports.checkpoints import Shared
from dragoman.server.api.operation import Operation, Values
from dragoman.server.api.reading import read
from dragoman.server.api.sessions import Sessions
from dragoman.server.api.shapes import JsonValue, SessionView, Turn
from dragoman.server.api.work.stored import StoredSessions
from dragoman.server.asgi import Request, Response
from dragoman.server.fronts.shared_client import SharedClients

REFUSALS = {
    404: "There is no such session or message.",
    409: "A turn runs, another rewind is under way, or not only this session changed the files.",
}


class Resend(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A message to send in place of an earlier one, which is undone with all that followed."""

    to: Annotated[
        int | str | None,
        Meta(description="The number or id of the earlier message; without it the last one."),
    ] = None
    prompt: Annotated[
        str | list[dict[str, JsonValue]] | None,
        Meta(description="A text, or content blocks as ACP has them; without it the same message again."),
    ] = None
    what: Literal["conversation", "both"] = "conversation"
    shared: Shared = "refuse"


class Fork(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the new session is to have."""

    agent: Annotated[str | None, Meta(description="Another agent than the original's.")] = None
    at: Annotated[
        int | str | None,
        Meta(
            description="The number or id of the message that it begins before; without it, all of the history."
        ),
    ] = None
    name: Annotated[str | None, Meta(description="Its title, if not the original's.")] = None


class RewindApi:
    def __init__(self, gateway: Gateway, gateway_clients: SharedClients, sessions: Sessions) -> None:
        self._stored = StoredSessions(gateway, gateway_clients)
        self._sessions = sessions

    def operations(self) -> tuple[Operation, ...]:
        one = "/api/sessions/{id}"
        # fmt: off
        return (
            Operation(
                "GET", f"{one}/messages", "The messages that a session can go back to", self.messages, MessageList,
                does=MESSAGES, refusals={404: REFUSALS[404]},
            ),
            Operation(
                "POST", f"{one}/rewind", "Go back to before a message, with the conversation, the files or both",
                self.rewind, Rewound, body=RewindWish, does=REWIND, refusals=REFUSALS,
            ),
            Operation(
                "POST", f"{one}/resend", "Undo a message and what followed, and send it again, changed or not",
                self.resend, Turn, body=Resend, does=REWIND, refusals=REFUSALS,
            ),
            Operation(
                "POST", f"{one}/fork", "Begin a new session with the history of this one", self.fork, SessionView,
                status=201, body=Fork, does="session/fork", refusals={404: REFUSALS[404]},
            ),
        )
        # fmt: on

    async def fork(self, request: Request, values: Values) -> Response:
        wanted = await read(request, Fork)
        own = {key: value for key, value in msgspec.to_builtins(wanted).items() if value is not None}
        params = {"mcpServers": [], "_meta": {"dragoman": {**own, "wake": False}}}
        same = wanted.agent is None or wanted.agent == await self._stored.agent(values["id"])
        reply = await self._stored.ask(request, values["id"], "session/fork", params, wake=same)
        made = str(decode_object(reply.result)["sessionId"])
        found = await self._sessions.get(request, {"id": made})
        return Response(201, found.body, headers=(("location", f"/api/sessions/{made}"),))

    async def messages(self, request: Request, values: Values) -> Response:
        reply = await self._stored.ask(request, values["id"], MESSAGES, {})
        return Response(200, reply.result, "application/json")

    async def rewind(self, request: Request, values: Values) -> Response:
        wish = await read(request, RewindWish)
        reply = await self._stored.ask(request, values["id"], REWIND, _asked(wish))
        return Response(200, reply.result, "application/json")

    async def resend(self, request: Request, values: Values) -> Response:
        wanted = await read(request, Resend)
        wish = RewindWish(to=wanted.to, retry=wanted.to is None, what=wanted.what, shared=wanted.shared)
        reply = await self._stored.ask(request, values["id"], REWIND, _asked(wish))
        same = decode_object(reply.result).get("prompt", [])
        return await self._sessions.run_turn(request, values["id"], wanted.prompt or same)


def _asked(wish: RewindWish) -> dict[str, JsonValue]:
    return {name: value for name, value in msgspec.to_builtins(wish).items() if value is not None}
