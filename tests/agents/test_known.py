"""From a name to an agent."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dragoman.agents.known import (
    KNOWN,
    NotInstalled,
    UnknownAgent,
    find_agent,
    known_layer,
    locate,
    require,
)
from dragoman.config.load import load
from dragoman.config.model import AgentConfig, Config
from dragoman.config.paths import find_paths


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return load(find_paths({"DRAGOMAN_HOME": str(tmp_path)}), known=known_layer(), environ={}).config


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("claude", ["claude"]),
        ("codex", ["codex"]),
        ("claude-acp", ["claude-agent-acp"]),
        ("codex-acp", ["codex-acp"]),
        ("gemini", ["gemini", "--acp"]),
        ("opencode", ["opencode", "acp"]),
        ("qwen", ["qwen", "--acp"]),
        ("goose", ["goose", "acp"]),
    ],
)
def test_known_agents_need_no_configuration(config: Config, name: str, command: list[str]) -> None:
    assert find_agent(config, name, {}).command == command


def test_every_known_agent_says_how_to_install_it_and_log_in() -> None:
    for name, known in KNOWN.items():
        if known.kind == "acp":
            assert known.command, name
            assert known.install, name
            assert known.login, name
            assert known.homepage.startswith("https://"), name


def test_an_unknown_name_gets_the_nearest_ones(config: Config) -> None:
    with pytest.raises(UnknownAgent, match='there is no agent "Opencod": did you mean opencode') as caught:
        find_agent(config, "Opencod", {})
    assert caught.value.nearest[0] == "opencode"


def test_the_built_in_agent_is_python_of_our_own(config: Config) -> None:
    assert find_agent(config, "builtin", {}).command == [sys.executable, "-P", "-m", "dragoman.builtin"]


def test_the_built_in_agent_is_told_its_model() -> None:
    agent = AgentConfig(kind="builtin", model="ollama:llama3.2", base_url="http://localhost:11434/v1")
    config = Config(agents={"local": agent})
    expected = ["--model", "ollama:llama3.2", "--base-url", "http://localhost:11434/v1"]
    assert find_agent(config, "local", {}).command[4:] == expected


def test_a_remote_agent_needs_no_program() -> None:
    config = Config(agents={"far": AgentConfig(kind="remote", url="ws://far")})
    assert find_agent(config, "far", {}).url == "ws://far"


def test_in_test_mode_any_name_is_a_program(config: Config) -> None:
    mode = {"DRAGOMAN_ACP_TEST_MODE": "1"}
    assert find_agent(config, "mock-agent", mode).command == ["mock-agent", "--acp"]
    assert find_agent(config, "goose", mode).command == ["goose", "acp"], "known names keep their command"


def test_direct_spawn_ignores_the_sandbox() -> None:
    config = Config(agents={"x": AgentConfig(command=["x"], sandbox="bubblewrap")})
    assert find_agent(config, "x", {}).sandbox == "bubblewrap"
    assert find_agent(config, "x", {"DRAGOMAN_ACP_DIRECT_SPAWN": "1"}).sandbox is None
    assert find_agent(config, "x", {"CAI_ACP_DIRECT_SPAWN": "1"}).sandbox is None
    both = {"DRAGOMAN_ACP_DIRECT_SPAWN": "0", "CAI_ACP_DIRECT_SPAWN": "1"}
    assert find_agent(config, "x", both).sandbox is not None  # our own name decides


def test_programs_are_found_on_the_path(tmp_path: Path) -> None:
    first, second = tmp_path / "1", tmp_path / "2"
    for folder, mode in ((first, 0o644), (second, 0o755)):
        folder.mkdir()
        (folder / "prog").touch(mode=mode)
    search = f"{first}::{second}"
    assert locate(["prog", "--acp"], search) == second / "prog", "what cannot be executed does not count"
    assert locate([str(second / "prog")], "") == second / "prog"
    assert locate(["other"], search) is None
    assert locate([], search) is None
    assert locate([str(tmp_path)], search) is None


def test_a_missing_program_names_the_line_that_installs_it(config: Config) -> None:
    gemini = AgentConfig(command=["gemini", "--acp"], env={"PATH": "/nowhere"})
    with pytest.raises(
        NotInstalled,
        match="install it: dragoman agents install gemini \\(or npm install -g @google/gemini-cli\\)",
    ) as caught:
        require("gemini", gemini)
    assert (caught.value.name, caught.value.program) == ("gemini", "gemini")
    assert caught.value.install == "npm install -g @google/gemini-cli"


def test_a_missing_program_of_the_users_own_names_the_key() -> None:
    with pytest.raises(NotInstalled, match=r'no program "mine"; check agents.gemini.command and PATH'):
        require("gemini", AgentConfig(command=["mine"]))
