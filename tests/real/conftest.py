"""A gateway in front of one real agent, which talks to a scripted model."""

from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from real import results
from real.agents import RealAgent, chosen
from real.audited import check_audit
from real.client import RealGateway
from real.install import installed
from real.model_server import ModelServer
from real.results import BEHAVIOURS
from support.gateway_process import Table

OTHERS = (
    "ANTHROPIC_",
    "CLAUDE",
    "OPENAI_",
    "CODEX_",
    "GEMINI_",
    "GOOGLE_",
    "QWEN_",
    "OPENCODE_",
    "XDG_",
    "IS_SANDBOX",
)
"""Settings of agents that this machine's user may have; none must reach ours."""
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.real)
            # An agent's first test may have to install it.
            item.add_marker(pytest.mark.timeout(900))
            _say_what_it_shows(item)


def _say_what_it_shows(item: pytest.Item) -> None:
    """Travels with the report, also from another process."""
    marker = item.get_closest_marker("behaviour")
    callspec = getattr(item, "callspec", None)
    agent: RealAgent | None = callspec and callspec.params.get("real")
    if marker is None or agent is None:
        return
    for behaviour in marker.args:
        assert behaviour in BEHAVIOURS, behaviour
        item.user_properties.append(("behaviour", [agent.name, agent.version, behaviour]))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call" or report.failed:
        for name, value in report.user_properties:
            if name == "behaviour":
                works = None if report.when == "setup" else report.passed
                results.record(*value, works=works)  # type: ignore[misc]


def pytest_sessionfinish(session: pytest.Session) -> None:
    if not hasattr(session.config, "workerinput"):
        results.keep()


@pytest.fixture(params=chosen(), ids=lambda agent: f"{agent.name}-{agent.version}")
def real(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> RealAgent:
    """Each agent in turn."""
    for name in os.environ:
        if name.upper().startswith(OTHERS) or name.lower() in PROXIES:
            monkeypatch.delenv(name)
    agent: RealAgent = request.param
    installed(agent.name)
    return agent


@pytest.fixture
async def model() -> AsyncIterator[ModelServer]:
    server = ModelServer()
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
def agent_home() -> Iterator[Path]:
    """The agent's private HOME, which it may still be writing to when it is killed."""
    with tempfile.TemporaryDirectory(prefix="real-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


Begin = Callable[..., Awaitable[RealGateway]]


@pytest.fixture
async def begin(real: RealAgent, model: ModelServer, home: Path, agent_home: Path) -> AsyncIterator[Begin]:
    """Start an initialized gateway for the agent; it must leave no process, whatever happened in the test.

    At the end the audit must have every tool call that was seen.
    """
    started: list[RealGateway] = []
    homes: dict[Path, list[RealGateway]] = {}

    async def start(
        capabilities: dict[str, Any] | None = None,
        sandboxes: Table | None = None,
        at: Path = home,
        policy: Table | None = None,
        **settings: Any,
    ) -> RealGateway:
        table = real.table(installed(real.name), agent_home, model.url)
        agents = {real.name: {**table, **settings}}
        config = {"default_agent": real.name, "agents": agents, "sandboxes": sandboxes or {}}
        config["checkpoints"] = {"enabled": True}
        if policy is not None:
            config["policy"] = policy
        gateway = await RealGateway.start(at, "acp", real.name, config=config)
        assert isinstance(gateway, RealGateway)
        gateway.program = next(part for part in table["command"] if "node_modules" in part)
        started.append(gateway)
        homes.setdefault(at, []).append(gateway)
        await gateway.greet(capabilities or {})
        return gateway

    yield start
    failures = []
    for gateway in started:
        try:
            await gateway.stop()
        except (AssertionError, TimeoutError) as failure:
            failures.append(failure)
        print(f"--- stderr of the gateway ---\n{gateway.stderr[-20000:]}")
    if failures:
        raise failures[0]
    for place, gateways in homes.items():
        check_audit(place, gateways)
