"""The compatibility page is the last run on real agents, and that run was whole."""

from __future__ import annotations

from pathlib import Path

from real.agents import AGENTS
from real.results import BEHAVIOURS

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "compatibility.md"


def test_every_behaviour_works_on_every_agent_of_the_page() -> None:
    lines = PAGE.read_text().splitlines()
    names = " | ".join(f"{agent.name} {agent.version}" for agent in AGENTS)
    assert f"| Behaviour | {names} |" in lines
    for behaviour in BEHAVIOURS:
        assert f"| {behaviour} |{' works |' * len(AGENTS)}" in lines
