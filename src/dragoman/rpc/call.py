"""Waits: for the reply to a request of ours, and for an event with a bound."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from dragoman.rpc.peer import Peer
from dragoman.rpc.request import Reply


async def happens(event: asyncio.Event, seconds: float) -> bool:
    """Wait for an event, for `seconds` at most; returns whether it happened."""
    try:
        async with asyncio.timeout(seconds):
            return await event.wait()
    except TimeoutError:
        return False


async def call(peer: Peer, method: str, params: object, *, cancels: bool = False) -> Any:
    """Send a request and return its result, None if it cannot be decoded; raises `RpcError`.

    With `cancels`, cancelling the wait cancels the request.
    """
    future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
    number = peer.request(
        method,
        msgspec.json.encode(params),
        lambda reply: None if future.done() else future.set_result(reply),
    )
    try:
        reply = await future
    except asyncio.CancelledError:
        if cancels:
            peer.cancel(number)
            peer.forget(number)
        raise
    if not reply.ok:
        raise reply.as_error()
    try:
        return msgspec.json.decode(reply.result)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
