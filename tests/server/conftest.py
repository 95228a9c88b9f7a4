"""Fixtures that start a real `dragoman serve`."""

from __future__ import annotations

import ssl
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from support.certificates import make_certificate
from support.gateway_process import Start
from support.serve_process import ServeProcess, UrlFraming

Serve = Callable[..., Awaitable[ServeProcess]]


@pytest.fixture
async def serve(dragoman: Start) -> AsyncIterator[Serve]:
    """Start servers: `await serve("--agent", "scripted", limits={...})`; each on a free port."""
    started: list[ServeProcess] = []

    async def start(*arguments: str, **sections: Any) -> ServeProcess:
        framing = UrlFraming()
        gateway = await dragoman("serve", "--port", "0", *arguments, framing=framing, **sections)
        serving = ServeProcess(gateway, await framing.url())
        started.append(serving)
        return serving

    yield start
    for serving in started:
        await serving.close()


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return make_certificate(tmp_path_factory.mktemp("tls"))


async def works(serving: ServeProcess, workspace: Path, context: ssl.SSLContext | None = None) -> None:
    """A newcomer is served as if nothing had happened."""
    socket = await serving.socket(context=context)
    await socket.initialize()
    session = await socket.new_session(workspace)
    assert (await socket.prompt(session, "fine")).texts == ["fine"]
    await socket.close()


def limited(**values: float) -> tuple[str, ...]:
    """A prefix for servers with other limits."""
    changes = "; ".join(f"limits.{name} = {value}" for name, value in values.items())
    script = f"import runpy, sys; from dragoman.server import limits; {changes}; sys.argv = sys.argv[3:]; "
    return (sys.executable, "-c", script + "runpy.run_module('dragoman', run_name='__main__')")


@pytest.fixture
async def serving(serve: Serve) -> ServeProcess:
    return await serve()
