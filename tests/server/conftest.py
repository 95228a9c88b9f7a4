"""Fixtures that start a real `dragoman serve`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from support.gateway import Start
from support.serving import Serving, UrlFraming

Serve = Callable[..., Awaitable[Serving]]


@pytest.fixture
async def serve(dragoman: Start) -> AsyncIterator[Serve]:
    """Start servers: `await serve("--agent", "scripted", limits={...})`; each on a free port."""
    started: list[Serving] = []

    async def start(*arguments: str, **sections: Any) -> Serving:
        framing = UrlFraming()
        gateway = await dragoman("serve", "--port", "0", *arguments, framing=framing, **sections)
        serving = Serving(gateway, await framing.url())
        started.append(serving)
        return serving

    yield start
    for serving in started:
        await serving.close()


@pytest.fixture
async def serving(serve: Serve) -> Serving:
    return await serve()
