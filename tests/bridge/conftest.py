"""Fixtures: a real `dragoman serve`, and pages that speak to its bridge."""

from __future__ import annotations

import pytest

from server.conftest import Serve, serve, serving
from support.clients.bridge_page import Page
from support.serve_process import ServeProcess

__all__ = ["Serve", "serve", "serving"]


@pytest.fixture
async def page(serving: ServeProcess) -> Page:
    return await Page.open(serving)
