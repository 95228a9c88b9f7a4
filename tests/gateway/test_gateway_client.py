"""The link of a client inside the gateway's own process."""

from __future__ import annotations

import asyncio

import pytest

from dragoman.gateway.gateway_client import GatewayClient, ToGateway
from dragoman.rpc.peer import Peer
from dragoman.rpc.request import Reply
from dragoman.wire.framing import Frame

REQUEST = b'{"jsonrpc":"2.0","id":1,"method":"session/list","params":{}}'
ANSWER = b'{"jsonrpc":"2.0","id":7,"result":{}}'


class Gateway(Peer):
    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self.ended = asyncio.Event()

    def link_messages(self, frames: list[Frame]) -> None:
        self.frames += frames

    def link_closed(self, reason: str | None) -> None:
        self.ended.set()


async def test_a_request_is_handled_at_once() -> None:
    gateway = Gateway()
    ToGateway(gateway).send(REQUEST)
    assert gateway.frames == [REQUEST]


async def test_an_answer_waits_for_the_next_turn_of_the_loop() -> None:
    gateway = Gateway()
    ToGateway(gateway).send(ANSWER)
    assert gateway.frames == [], "the gateway may still be asking"
    await asyncio.sleep(0)
    assert gateway.frames == [ANSWER]


async def test_what_follows_an_answer_does_not_overtake_it() -> None:
    gateway = Gateway()
    link = ToGateway(gateway)
    link.send(ANSWER)
    link.send(REQUEST)
    link.close()
    assert gateway.frames == [] and not gateway.ended.is_set()
    async with asyncio.timeout(5):
        await gateway.ended.wait()
    assert gateway.frames == [ANSWER, REQUEST], "what was sent before the end arrives"


async def test_a_reply_whose_handler_fails_ends_the_wait_with_that_failure() -> None:
    class Answering(Gateway):
        def link_messages(self, frames: list[Frame]) -> None:
            client.send(b'{"jsonrpc":"2.0","id":1,"result":{}}')

    def fail(reply: Reply) -> None:
        raise KeyError("the page left")

    client = GatewayClient()
    client.peer.link_opened(ToGateway(Answering()))
    with pytest.raises(KeyError, match="the page left"):
        await asyncio.wait_for(client.result("session/resume", {}, fail), 5)
