"""The gateway client of a command that is attached to one session: it hears updates and is asked questions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from dragoman.cli.compose import gateway
from dragoman.cli.conversation import Conversation
from dragoman.cli.sessions.find import find, reading
from dragoman.cli.sessions.state import View, look
from dragoman.client.question import Question
from dragoman.config.model import Config
from dragoman.config.paths import Paths
from dragoman.gateway.access.client import Terms
from dragoman.gateway.json_types import JsonObject, as_object, decode_object
from dragoman.rpc.request import Request
from dragoman.wire.errors import method_not_found

PERMISSION = "session/request_permission"


class Attached(Conversation):
    on_update: Callable[[JsonObject], None] = staticmethod(lambda update: None)
    on_question: Callable[[Question], None] = staticmethod(lambda question: question.reject())

    def peer_request(self, request: Request) -> None:
        if request.method != PERMISSION:
            raise method_not_found(request.method)
        self.on_question(Question.of(request))

    def peer_notification(self, method: str, params: bytes) -> None:
        if method == "session/update":
            self.on_update(as_object(decode_object(params).get("update")))


@asynccontextmanager
async def attached(session: str, config: Config, paths: Paths) -> AsyncIterator[Attached]:
    """Attached to the session, in its owner or in a gateway of this process, without starting its agent."""
    limit = config.limits.max_message_bytes
    async with reading(paths) as store:
        (view,) = await look(store, [await find(store, session)])
    if view.address is None:
        async with gateway(config, paths) as running:
            client = await Attached.inside(running, Terms(start_ahead=False, leave_turns=True))
            await _attach(client, view)
            try:
                yield client
            finally:
                await client.disconnect()
        return
    client = await Attached.with_owner(view.address, limit)
    try:
        await _attach(client, view)
        yield client
    finally:
        client.hang_up()


async def _attach(client: Attached, view: View) -> None:
    meta = {"dragoman": {"wake": False}}
    setup = {"sessionId": view.record.id, "cwd": view.record.cwd, "mcpServers": [], "_meta": meta}
    await client.result("session/resume", setup)
