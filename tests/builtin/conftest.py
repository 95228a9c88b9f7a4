"""Fixtures that start the built-in agent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from support.agents.builtin_process import Builtin, StartBuiltin
from support.agents.fake_llm import FakeLlm, fake_llm


@pytest.fixture
async def builtin(home: Path) -> AsyncIterator[StartBuiltin]:
    """Start agents: `await builtin("--model", "...", env={...}, capabilities={...})`; each must end by itself."""
    started: list[Builtin] = []

    async def start(*arguments: str, **settings: Any) -> Builtin:
        agent = await Builtin.start(home, *arguments, **settings)
        started.append(agent)
        return agent

    yield start
    codes = [await agent.stop() for agent in started if agent.process.returncode is None]
    assert not any(codes), codes


@pytest.fixture
async def agent(builtin: StartBuiltin) -> Builtin:
    """An agent without a model."""
    return await builtin()


@pytest.fixture
async def llm() -> AsyncIterator[FakeLlm]:
    """A scripted model over HTTP."""
    async with fake_llm() as model:
        yield model


@pytest.fixture(params=["openai", "anthropic", "google", "openai-responses"])
async def thinker(request: pytest.FixtureRequest, builtin: StartBuiltin, llm: FakeLlm) -> Builtin:
    """An agent whose model is the scripted one, in every shape that providers have."""
    return await start_with(builtin, llm, request.param)


@pytest.fixture
async def openai(builtin: StartBuiltin, llm: FakeLlm) -> Builtin:
    """An agent whose model is the scripted one, in OpenAI's shape."""
    return await start_with(builtin, llm, "openai")


@pytest.fixture
def in_shape(builtin: StartBuiltin, llm: FakeLlm) -> Callable[[str], Awaitable[Builtin]]:
    """Start an agent whose model is the scripted one, in the shape that is named."""
    return lambda shape: start_with(builtin, llm, shape)


async def start_with(builtin: StartBuiltin, llm: FakeLlm, shape: str, *more: str, **settings: Any) -> Builtin:
    url = llm.url if shape.startswith("openai") else llm.root
    keys = dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"), "test")
    return await builtin(
        "--model", f"{shape}:fake", "--base-url", url, *more, env=keys, warm=True, **settings
    )
