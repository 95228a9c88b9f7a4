"""Fixtures that start a real gateway with scripted agents."""

from __future__ import annotations

import logging
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from dragoman import log
from support.agents.agent_log import AgentLog
from support.fork_server import share_fork_servers
from support.gateway_process import GatewayProcess, Start, Table, agent
from support.prerequisites import SkipAccount
from support.rpc_peer import Framing
from support.store.failing_store import Faults


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "rule(id, ...): the gateway rules that this test proves")
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(SkipAccount())
    share_fork_servers()


LONG = ("web/test_pictures.py",)
"""What takes more than its share of the time that `make test` has on two cores; `make test-long` runs it."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The browser's tests come first: they share one worker, and at the end the others would wait for it."""
    here = Path(__file__).parent
    for item in items:
        if item.path.relative_to(here).as_posix().startswith(LONG):
            item.add_marker(pytest.mark.long)
    items.sort(key=lambda item: here / "web" not in item.path.parents)


@pytest.fixture(autouse=True)
def log_as_found() -> Iterator[None]:
    """A command that runs inside this process sets the log up; without this, later tests could not read it."""
    logger = logging.getLogger("dragoman")
    before = (logger.handlers, logger.level, logger.propagate, logging.raiseExceptions, logging._srcfile)
    logger.handlers = []
    yield
    for handler in logger.handlers:
        handler.close()
    log._quick = None
    logger.handlers, level, logger.propagate, logging.raiseExceptions, logging._srcfile = before
    logger.setLevel(level)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A project folder for sessions."""
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture
def home() -> Iterator[Path]:
    """A short DRAGOMAN_HOME: the path of a socket inside it must not exceed 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="dgm-") as folder:
        yield Path(folder)


@pytest.fixture
async def dragoman(home: Path) -> AsyncIterator[Start]:
    """Start gateways: `await dragoman("acp", "scripted", agents={...}, limits={...})`.

    Without `agents` there is one scripted agent named `scripted`, which is the default. At the end every
    gateway is left by its client, must end by itself and leave no process behind.
    """
    started: list[GatewayProcess] = []

    async def start(
        *arguments: str,
        agents: Table | None = None,
        env: dict[str, str] | None = None,
        framing: Framing | None = None,
        cwd: Path | None = None,
        prefix: Sequence[str] = (),
        **sections: Any,
    ) -> GatewayProcess:
        agents = agents or {"scripted": agent()}
        config = {"default_agent": next(iter(agents)), **sections, "agents": agents}
        words = arguments or ("acp", "scripted")
        gateway = await GatewayProcess.start(
            home, *words, config=config, env=env, framing=framing, cwd=cwd, prefix=prefix
        )
        started.append(gateway)
        return gateway

    yield start
    failures = []
    for gateway in started:
        gateway.leave()  # all of them first: one may watch a session of another, which then stays
    for gateway in started:
        try:
            await gateway.stop()
        except (AssertionError, TimeoutError) as failure:
            failures.append(failure)
        sys.stderr.write(f"--- stderr of the gateway ---\n{gateway.stderr[-20000:]}\n")
    if failures:
        raise failures[0]


@pytest.fixture
def heard(tmp_path: Path) -> AgentLog:
    """What scripted agents started with `*heard.flags` received."""
    return AgentLog(tmp_path / "heard.jsonl")


@pytest.fixture
async def client(dragoman: Start) -> GatewayProcess:
    """An initialized client of `dragoman acp scripted`."""
    gateway = await dragoman()
    await gateway.initialize()
    return gateway


@pytest.fixture
def faults(tmp_path: Path) -> Faults:
    """For gateways whose store fails or waits when the test says so."""
    return Faults(tmp_path / "faults")
