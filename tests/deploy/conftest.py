"""A running `dragoman serve` for tests of what stands in front of it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from support.gateway_process import Start
from support.serve_process import ServeProcess, UrlFraming


@pytest.fixture
async def serving(dragoman: Start) -> AsyncIterator[ServeProcess]:
    framing = UrlFraming()
    gateway = await dragoman("serve", "--port", "0", framing=framing)
    serving = ServeProcess(gateway, await framing.url())
    yield serving
    await serving.close()
