"""Agents of a configuration that changes while the gateway runs."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from dragoman.agents.configured import LOOK_SECONDS, ConfiguredAgents
from dragoman.agents.known import known_layer
from dragoman.config.load import load
from dragoman.config.model import Config
from dragoman.config.paths import Paths, find_paths
from dragoman.wire.errors import RpcError


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return find_paths({"DRAGOMAN_HOME": str(tmp_path)})


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def configured(paths: Paths, clock: Clock) -> ConfiguredAgents:
    def read() -> Config:
        return load(paths, known=known_layer(), environ={}).config

    return ConfiguredAgents(read(), [paths.config_file], read, clock)


def test_an_agent_that_is_added_changed_or_removed_counts_at_once(paths: Paths) -> None:
    clock = Clock()
    agents = configured(paths, clock)
    told: list[Config] = []
    agents.on_change = told.append
    paths.config_file.write_text('[agents.mine]\ncommand = ["one"]\n')
    with pytest.raises(RpcError, match="there is no agent"):  # looked at a moment ago
        agents.find("mine")
    clock.now += LOOK_SECONDS
    assert agents.find("mine").command == ["one"]
    assert "mine" in told[0].agents
    paths.config_file.write_text('[agents.mine]\ncommand = ["another"]\n')
    clock.now += LOOK_SECONDS
    assert agents.find("mine").command == ["another"]
    paths.config_file.unlink()
    clock.now += LOOK_SECONDS
    assert "mine" not in agents.names()
    assert "claude" in agents.all()


def test_a_broken_file_leaves_the_agents_as_they_were(paths: Paths, caplog: pytest.LogCaptureFixture) -> None:
    paths.config_file.write_text('[agents.mine]\ncommand = ["one"]\n')
    clock = Clock()
    agents = configured(paths, clock)
    paths.config_file.write_text("[agents.mine\n")
    clock.now += LOOK_SECONDS
    with caplog.at_level(logging.ERROR):
        assert agents.find("mine").command == ["one"]
    assert "config.toml:1" in caplog.text
