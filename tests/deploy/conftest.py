"""A running `dragoman serve` for tests of what stands in front of it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from support.gateway import Start
from support.serving import Serving, UrlFraming


@pytest.fixture
async def serving(dragoman: Start) -> AsyncIterator[Serving]:
    framing = UrlFraming()
    gateway = await dragoman("serve", "--port", "0", framing=framing)
    serving = Serving(gateway, await framing.url())
    yield serving
    await serving.close()
