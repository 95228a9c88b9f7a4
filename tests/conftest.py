"""Fixtures that start a real gateway with scripted agents."""

from __future__ import annotations

import gc
import logging
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadGroupScheduling  # type: ignore[import-untyped]

from dragoman import log
from support.agents.agent_log import AgentLog
from support.fork_server import share_fork_servers
from support.gateway_process import GatewayProcess, Start, Table, agent
from support.prerequisites import SkipAccount
from support.rpc_peer import Framing
from support.store.failing_store import Faults

if TYPE_CHECKING:
    from _pytest.python import CallSpec2


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "rule(id, ...): the gateway rules that this test proves")
    settings.register_profile("long", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.register_profile("short", settings.get_profile("long"), max_examples=30)
    settings.load_profile("long" if config.option.markexpr == "long" else "short")
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(SkipAccount())
    share_fork_servers()


LONG = {
    "acp/test_permission_paths.py": {"agent"},
    "agents/remote/test_chain.py::test_ten_thousand_updates": {"ws"},
    "agents/remote/test_reconnect.py": {"ws"},
    "agents/test_custody.py": {"asyncio"},
    "agents/test_daemons.py::test_daemons_of_a_command_that_runs": {"builtin"},
    "agents/test_process.py": {"asyncio"},
    "bridge/test_bounds.py": {"HTTP/1.1"},
    "builtin/test_cancellation.py": {"google", "responses"},
    "builtin/test_loop.py": {"google", "responses"},
    "sandbox/test_answers.py": {"podman", "ssh"},
    "sandbox/test_client_services.py": {"podman", "ssh"},
    "sandbox/test_kinds.py::test_history": {"podman", "ssh"},
    "sandbox/test_kinds.py::test_questions": {"podman", "ssh"},
    "sandbox/test_kinds.py::test_sessions": {"podman", "ssh"},
    "server/test_streamable.py::test_a_stream_that_nobody_reads": {"HTTP/1.1"},
    "services/test_terminals.py": {"asyncio"},
    "sessions/test_faults.py": {"5", "6", "7", "8"},
    "test_skips.py": {"side by side"},
    "web/test_approving.py": {"dark", "phone"},
    "web/test_audit_page.py": {"dark", "light"},
    "web/test_pictures.py": None,
    "web/test_policy_page.py": {"light", "phone"},
    "web/test_remembering.py": {"desktop"},
}
"""What takes more than its share of the time that `make test` has on two cores; `make test-long` runs it.

By the beginning of a test's id: its variants that are named, or all of it. Another variant stays in `make test`.
"""
IN_FULL = (
    "builtin/test_loop.py::test_text_and_thinking",
    "builtin/test_loop.py::test_a_turn_of_several_tools",
)
"""Tests that `make test` runs in all of their variants, whatever LONG says."""


def is_long(item: pytest.Item) -> bool:
    id = item.nodeid.removeprefix("tests/")
    callspec: CallSpec2 | None = getattr(item, "callspec", None)
    words = set(callspec.id.split("-")) if callspec else set()
    return not id.startswith(IN_FULL) and any(
        id.startswith(start) and (variants is None or not words.isdisjoint(variants))
        for start, variants in LONG.items()
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The browser's tests come first: they share one worker, and at the end the others would wait for it.

    `make test-long` runs the property tests again, with more examples.
    """
    here = Path(__file__).parent
    again = config.option.markexpr == "long"
    for item in items:
        if is_long(item) or (again and item.get_closest_marker("hypothesis")):
            item.add_marker(pytest.mark.long)
    items.sort(key=lambda item: here / "web" not in item.path.parents)


GROUPS = {
    "tests/web/": "browser",  # which takes seconds to start, and more than one beside the other tests makes all slow
    "tests/test_code_shape.py": "source",  # all files are read once
    "tests/test_layers.py": "source",
    "tests/test_protocol_rules.py": "rules",
    "tests/test_requirements.py": "rules",
}
"""Tests that share a worker, by the beginning of their id."""


def group(nodeid: str) -> str:
    """The group of a test; `xdist_group` has no effect: pytest 9.2 ignores ids that pytest-xdist 3.8 sets."""
    return next((group for start, group in GROUPS.items() if nodeid.startswith(start)), nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadGroupScheduling | None:
    if config.getvalue("dist") != "loadgroup":
        return None
    scheduler = LoadGroupScheduling(config, log)
    scheduler._split_scope = group
    return scheduler


def pytest_collection_finish() -> None:
    """What all tests have loaded stays: no garbage collection looks through it again."""
    gc.freeze()


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
