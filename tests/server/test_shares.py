"""One token uses up its own share, and the others do not notice."""

from __future__ import annotations

import asyncio
import contextlib

import httpx
import pytest

from dragoman.gateway.access.identity import Identity, Role
from dragoman.server.asgi import HttpError
from dragoman.server.listen.token_shares import TokenShares
from support.clients import http2_websocket
from support.clients.streamable_client import StreamableClient
from support.rpc_peer import PATIENCE
from support.serve_process import Refused, ServeProcess

from .conftest import Serve, limited

INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}
FEW = 4


async def other(serving: ServeProcess) -> httpx.AsyncClient:
    """A client with a token of its own."""
    made = await serving.http().post("/api/tokens", json={"name": "other", "role": "control"})
    client = serving.http(token=False)
    client.headers["Authorization"] = f"Bearer {made.json()['secret']}"
    return client


def test_a_share_is_given_back_and_the_whole_is_bounded_too() -> None:
    one, two, three = (Identity(name, Role.CONTROL, name) for name in ("one", "two", "three"))
    shares = TokenShares("things", each=2, together=3)
    shares.take(one)
    shares.take(one)
    with pytest.raises(HttpError) as refused:
        shares.take(one)
    assert refused.value.status == 429 and "one" in refused.value.message
    assert ("retry-after", "30") in refused.value.headers
    shares.take(two)
    with pytest.raises(HttpError) as refused, shares.taken(three):
        pass
    assert refused.value.status == 503
    shares.give_back(one)
    with shares.taken(one):
        pass
    with pytest.raises(HttpError) as refused, shares.reserved(one):
        raise HttpError(404, "There is nothing here.")
    with pytest.raises(ValueError), shares.reserved(one):
        raise ValueError("a bug of ours")
    with shares.reserved(one):
        pass
    with pytest.raises(HttpError):
        shares.take(one)


async def test_the_clients_of_one_token_leave_room_for_those_of_another(serve: Serve) -> None:
    serving = await serve(prefix=limited(MAX_HTTP_CONNECTIONS=FEW))
    mine, theirs = serving.http(), await other(serving)

    async def post(client: httpx.AsyncClient, name: str) -> httpx.Response:
        return await client.post("/acp/rpc", params={"client_id": name}, json=INITIALIZE)

    assert [(await post(mine, f"{number}")).status_code for number in range(FEW + 1)] == [202] * FEW + [429]
    refused = await post(mine, "one-more")
    assert refused.headers["retry-after"] == "30"
    assert "admin" in refused.json()["error"]
    assert (await mine.get("/acp/sse", params={"client_id": "one-more"})).status_code == 429
    assert (await post(mine, "0")).status_code == 202, "those that are there go on"
    assert (await post(theirs, "0")).status_code == 202


async def test_a_message_that_is_none_makes_no_client(serve: Serve) -> None:
    serving = await serve(prefix=limited(MAX_HTTP_CONNECTIONS=1))
    client = serving.http()
    for number in range(3):
        answer = await client.post(f"/acp/rpc?client_id={number}", json="nonsense")
        assert answer.status_code == 400
    assert (await client.post("/acp/rpc?client_id=good", json=INITIALIZE)).status_code == 202


async def test_the_connections_of_one_token_leave_room_for_those_of_another(serve: Serve) -> None:
    serving = await serve(prefix=limited(MAX_HTTP_CONNECTIONS=FEW))
    mine, theirs = serving.http(), await other(serving)
    peers = [StreamableClient(mine) for _ in range(FEW)]
    for peer in peers:
        await peer.initialize()
    assert (await mine.post("/acp/nobody", json=INITIALIZE)).status_code in (404, 429)
    assert (await mine.post("/acp", json=INITIALIZE)).status_code == 429
    assert (await theirs.post("/acp", json=INITIALIZE)).status_code == 200
    assert (await mine.delete("/acp", headers=peers[0].headers())).status_code == 202
    for _ in range(3):
        assert (await mine.post("/acp/nobody", json=INITIALIZE)).status_code == 404
    await StreamableClient(mine).initialize()


@pytest.mark.parametrize("way", ["HTTP/1.1", "HTTP/2"])
async def test_the_sockets_of_one_token_leave_room_for_those_of_another(serve: Serve, way: str) -> None:
    serving = await serve(prefix=limited(MAX_CONNECTIONS=40, TOKEN_SHARE=0.1))
    theirs = await other(serving)

    async def opened() -> None:
        await (http2_websocket.open_socket(serving) if way == "HTTP/2" else serving.socket())

    for _ in range(4):
        await opened()
    for _ in range(2):
        with pytest.raises(Refused) as refused:
            await opened()
        assert (refused.value.status, refused.value.headers["retry-after"]) == (429, "30")
    assert (await serving.http().get("/readyz")).status_code == 429
    assert (await serving.http(token=False).get("/healthz")).status_code == 200
    assert (await theirs.get("/api/sessions")).status_code == 200
    await serving.socket(headers={"Authorization": theirs.headers["Authorization"]})
    await serving.sockets[0].close()
    async with asyncio.timeout(PATIENCE):
        while True:  # the room comes back when it has left
            with contextlib.suppress(Refused):
                await opened()
                break


async def test_the_streams_of_one_token_leave_room_for_those_of_another(serve: Serve) -> None:
    serving = await serve(prefix=limited(MAX_CONNECTIONS=40, TOKEN_SHARE=0.1))
    mine, theirs = serving.http(), await other(serving)
    async with contextlib.AsyncExitStack() as stack:
        for number in range(4):
            listening = mine.stream("GET", f"/acp/sse?client_id={number}")
            assert (await stack.enter_async_context(listening)).status_code == 200
        assert (await mine.get("/api/sessions")).status_code == 429
        assert (await theirs.get("/api/sessions")).status_code == 200
    async with asyncio.timeout(PATIENCE):
        while (await mine.get("/api/sessions")).status_code != 200:
            await asyncio.sleep(0.01)  # nothing tells us that the server has noticed
