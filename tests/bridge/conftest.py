"""Fixtures: a real `dragoman serve`, and pages that speak to its bridge."""

from __future__ import annotations

import pytest

from server.conftest import Serve, serve, serving
from support.bridge_peer import Page
from support.serving import Serving

__all__ = ["Serve", "serve", "serving"]


@pytest.fixture
async def page(serving: Serving) -> Page:
    return await Page.open(serving)
