"""Sessions: list, create, rename, prompt, cancel, close, delete, export."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec

from dragoman.gateway.delivery import export
from dragoman.gateway.gateway import Gateway
from dragoman.gateway.json_types import JsonObject, decode_object, encode, own_meta
from dragoman.gateway.ownership.entries import SessionEntry
from dragoman.gateway.ports.store import SessionChanges, SessionRecord, Store, StoreError
from dragoman.rpc.request import Reply
from dragoman.server.api import answering
from dragoman.server.api.operation import Values
from dragoman.server.api.reading import read
from dragoman.server.api.shapes import Answer, NewSession, Prompt, SessionEdit, SessionList, SessionView, Turn
from dragoman.server.asgi import HttpError, Request, Response
from dragoman.server.fronts.shared_client import SharedClient, SharedClients
from dragoman.server.fronts.turn_text import TurnText

Exporter = Callable[[Store, SessionRecord], AsyncIterator[bytes]]
EXPORTS: dict[str, tuple[str, str, Exporter]] = {
    "md": ("text/markdown; charset=utf-8", "md", export.as_markdown),
    "markdown": ("text/markdown; charset=utf-8", "md", export.as_markdown),
    "ndjson": ("application/x-ndjson", "ndjson", export.as_ndjson),
}
"""By `format`: content type, file extension, exporter."""


class Sessions:
    def __init__(self, gateway: Gateway, gateway_clients: SharedClients, agent: str | None) -> None:
        """`agent` is the agent of new sessions that name none."""
        self._gateway = gateway
        self._gateway_clients = gateway_clients
        self._agent = agent

    async def list(self, request: Request, values: Values) -> Response:
        cwd, agent, cursor = (request.query(name) for name in ("cwd", "agent", "cursor"))
        page = await self._gateway.directory.list(cwd=cwd, agent=agent, cursor=cursor)
        return Response.json(SessionList([self._shown(kept) for kept in page.sessions], page.next_cursor))

    async def get(self, request: Request, values: Values) -> Response:
        return Response.json(self._shown(await self._find(values)))

    async def create(self, request: Request, values: Values) -> Response:
        wanted = await read(request, NewSession)
        params: JsonObject = {"cwd": wanted.cwd, "mcpServers": []}
        if wanted.additional_directories:
            params["additionalDirectories"] = wanted.additional_directories
        agent = wanted.agent or self._agent
        own: JsonObject = {} if agent is None else {"agent": agent}
        if wanted.worktree is not None:
            own["worktree"] = msgspec.to_builtins(wanted.worktree)
        if own:
            params["_meta"] = {"dragoman": own}
        result = await self._ask(request, "session/new", params)
        session_id = str(result["sessionId"])
        place = f"/api/sessions/{session_id}"
        return Response.json(self._shown(await self._find({"id": session_id})), 201, [("location", place)])

    async def edit(self, request: Request, values: Values) -> Response:
        wanted = await read(request, SessionEdit)
        title = " ".join(wanted.title.split())
        if not title:
            raise HttpError(400, "A title has at least one letter.")
        await rename(self._gateway, await self._find(values), title)
        return Response.json(self._shown(await self._find(values)))

    async def delete(self, request: Request, values: Values) -> Response:
        kept = await self._find(values)
        own: JsonObject = {"discard": request.query("discard") == "true"}
        told = await self._ask(request, "session/delete", {"sessionId": kept.id, "_meta": {"dragoman": own}})
        stays = own_meta(told).get("worktree")
        return Response(204) if stays is None else Response.json({"worktree": stays})

    async def close(self, request: Request, values: Values) -> Response:
        """Close a session; one that is not live is closed already."""
        kept = await self._find(values)
        if kept.live or kept.id in self._gateway.sessions:
            await self._ask(request, "session/close", {"sessionId": kept.id}, kept.id)
        return Response.json(self._shown(await self._find(values)))

    async def cancel(self, request: Request, values: Values) -> Response:
        """Cancel a running turn; without one this succeeds too."""
        kept = await self._find(values)
        await (await self._gateway_client(request)).cancel(kept.id)
        return Response(202)

    async def decide(self, request: Request, values: Values) -> Response:
        """Answer the permission question of a running turn."""
        given = await read(request, Answer)
        kept = await self._find(values)
        question = values["question"]
        session = answering.check_open(self._gateway.sessions.get(kept.id), question, given.option_id)
        await answering.answer(session, question, given, (await self._gateway_client(request)).client)
        return Response.json(self._shown(await self._find(values)))

    async def prompt(self, request: Request, values: Values) -> Response:
        """Run a turn and respond when it has ended; its questions wait for other clients of the session."""
        wanted = (await read(request, Prompt)).prompt
        kept = await self._find(values)
        return await self.run_turn(request, kept.id, wanted)

    async def run_turn(self, request: Request, session_id: str, wanted: object) -> Response:
        """Send a text, or content blocks, and respond when the turn has ended."""
        blocks = [{"type": "text", "text": wanted}] if isinstance(wanted, str) else wanted
        gateway_client = await self._gateway_client(request)
        params = encode({"sessionId": session_id, "prompt": blocks})
        heard = TurnText(self._gateway.config.limits.max_message_bytes)
        async with gateway_client.listening(session_id) as listeners:
            listeners.hear(heard)
            try:
                reply = await _prompt_unless_gone(request, gateway_client, session_id, params)
            finally:
                listeners.stop()
        reason = str(_result(reply).get("stopReason"))
        return Response.json(Turn(reason, heard.text, heard.truncated))

    async def export(self, request: Request, values: Values) -> None:
        wanted = request.query("format") or "ndjson"
        if wanted not in EXPORTS:
            raise HttpError(400, "format is md or ndjson.")
        content, ending, write = EXPORTS[wanted]
        store = self._gateway.store
        kept = await self._find(values)
        record = await store.get(kept.id) if store is not None else None
        if store is None or record is None:
            raise HttpError(409, "The conversation is not stored (sessions.journal).", code="not_kept")
        facts = {"session": kept.id, "agent": kept.agent, "by": request.identity.name, "to": wanted}
        self._gateway.audit.record("session_exported", facts)
        pieces = write(store, record)
        first = await anext(pieces)
        name = f'attachment; filename="{kept.id}.{ending}"'
        await request.start(200, [("content-type", content), ("content-disposition", name)])
        await request.write(first)
        gone = asyncio.ensure_future(request.wait_gone())
        try:
            async for piece in pieces:
                if gone.done():
                    return
                await request.write(piece)
            await request.write(b"", more=False)
        finally:
            gone.cancel()

    # -- the rest

    async def _find(self, values: Values) -> SessionEntry:
        kept = await self._gateway.directory.get(values["id"])
        if kept is None:
            raise HttpError(404, "There is no such session.", code="unknown_session")
        return kept

    async def _gateway_client(self, request: Request) -> SharedClient:
        gateway_client = self._gateway_clients.get(request.identity, None)
        await gateway_client.ready()
        return gateway_client

    async def _ask(
        self, request: Request, method: str, params: JsonObject, session_id: str | None = None
    ) -> JsonObject:
        gateway_client = await self._gateway_client(request)
        return _result(await gateway_client.fetch(method, encode(params), session_id))

    def _shown(self, kept: SessionEntry) -> SessionView:
        live = self._gateway.sessions.get(kept.id)
        return SessionView(
            id=kept.id,
            agent=kept.agent,
            cwd=kept.cwd,
            title=live.entry.title if live is not None else kept.title,
            updated_at=kept.updated_at,
            live=live is not None or kept.live,
            state=live.state if live is not None else kept.state,
            clients=len(live.attachments) if live is not None else 0,
            mediation=live.policy.mediation() if live is not None else None,
            question=live.questions.first() if live is not None else None,
        )


async def _prompt_unless_gone(
    request: Request, gateway_client: SharedClient, session_id: str, params: bytes
) -> Reply:
    """Send a prompt and return the reply; if the client disconnects first, `sessions.on_disconnect` applies."""
    answer = gateway_client.call("session/prompt", params)
    gone = asyncio.ensure_future(request.wait_gone())
    try:
        waits: list[asyncio.Future[Any]] = [answer, gone]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            gateway_client.abandon(session_id)
            raise HttpError(499, "The client left.")
        return answer.result()
    finally:
        gone.cancel()


def _result(reply: Reply) -> JsonObject:
    if not reply.ok:
        raise reply.as_error()
    return decode_object(reply.result)


async def rename(gateway: Gateway, kept: SessionEntry, title: str) -> None:
    """Rename a session: live in this process, for all attached clients, or only in the store."""
    session = gateway.sessions.get(kept.id)
    if session is not None and not session.owned_elsewhere:
        session.rename(title)
        await session.wait_settled()
    elif kept.live:
        raise HttpError(409, "Another program has this session open; rename it there.", code="session_held")
    elif gateway.store is None:
        kept.title = title
    else:
        await _rename_stored(gateway, kept, title)


async def _rename_stored(gateway: Gateway, kept: SessionEntry, title: str) -> None:
    store = gateway.store
    record = await store.get(kept.id) if store is not None else None
    if store is None or record is None:
        raise HttpError(404, "There is no such session.", code="unknown_session")
    done: asyncio.Future[StoreError | None] = asyncio.get_running_loop().create_future()
    changes = SessionChanges(title=title, extra={**record.extra, "named": True})
    store.update(kept.id, record.epoch, changes, done.set_result)
    error = await done
    if error is not None:
        raise error
