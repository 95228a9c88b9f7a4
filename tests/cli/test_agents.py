"""`dragoman agents`."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from dragoman.builtin.models.choice import PROVIDERS
from dragoman.cli.agents.command import capabilities
from dragoman.cli.agents.listing import models_of
from dragoman.config.model import AgentConfig
from support.gateway_process import agent

Run = Callable[..., subprocess.CompletedProcess[str]]


def install(programs: Path, name: str, script: str = "") -> Path:
    program = programs / name
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return program


def test_the_list_tells_what_is_installed_and_how_to_install_the_rest(run: Run, programs: Path) -> None:
    install(programs, "qwen", "echo 0.24.4")
    lines = run("agents", "list", env={"OPENAI_API_KEY": "k"}).stdout.splitlines()
    assert lines[0].split() == ["NAME", "KIND", "INSTALLED", "LOGIN", "MEDIATION", "FROM", "COMMAND"]
    assert lines[1].split() == [
        "builtin",
        "*",
        "builtin",
        "yes",
        "yes",
        "full",
        "Dragoman",
        "(built",
        "in)",
        "openai:gpt-5.4",
    ], "the default is marked, and a long path leaves no room"
    assert lines[2].split() == ["qwen", "acp", "0.24.4", "yes", "full", "PATH", "qwen", "--acp"], (
        "what can be used comes first"
    )
    (gemini,) = [line for line in lines if line.startswith("gemini ")]
    assert gemini.split() == ["gemini", "acp", "no", "asking", "npm", "install", "-g", "@google/gemini-cli"]
    assert "\x1b" not in "".join(lines), "no colours outside a terminal"


def test_the_list_tells_who_is_logged_in(run: Run, programs: Path, tmp_path: Path) -> None:
    for name in ("claude", "codex", "goose"):
        install(programs, name, "exit 3")
    (tmp_path / ".codex").mkdir()
    (tmp_path / ".codex" / "auth.json").write_text("{}")
    env = {"HOME": str(tmp_path)} | dict.fromkeys(("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "CODEX_HOME"), "")
    agents = {agent["name"]: agent for agent in json.loads(run("agents", "list", "--json", env=env).stdout)}
    assert {name: agents[name]["loggedIn"] for name in ("claude", "codex", "goose")} == {
        "claude": None if sys.platform == "darwin" else False,
        "codex": True,
        "goose": None,
    }
    assert agents["claude"]["version"] is None


@pytest.mark.parametrize(
    ("settings", "keys", "missing"),
    [
        ("", {}, "set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY, or agents.builtin.model"),
        ("", {"GEMINI_API_KEY": "k"}, ""),
        ('model = "anthropic:claude-opus-5-5"', {"GEMINI_API_KEY": "k"}, "set ANTHROPIC_API_KEY"),
        ('model = "llama"\nbase_url = "http://localhost:1/v1"', {}, ""),
        ('model = "ollama:llama3.2"', {}, ""),
    ],
)
def test_the_built_in_agent_names_the_key_that_is_missing(
    settings: str, keys: dict[str, str], missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for provider in PROVIDERS:
        for key in provider.keys:
            monkeypatch.delenv(key, raising=False)
    built_in = msgspec.convert({"kind": "builtin", **tomllib.loads(settings), "env": keys}, AgentConfig)
    assert models_of(built_in).missing() == missing


def test_the_list_as_json(run: Run, programs: Path) -> None:
    program = install(programs, "goose")
    agents = {agent["name"]: agent for agent in json.loads(run("agents", "list", "--json").stdout)}
    assert agents["goose"]["program"] == str(program)
    assert agents["goose"]["installed"] is True
    assert agents["claude"]["installed"] is False
    assert agents["claude"]["install"] == "npm install -g @anthropic-ai/claude-code"
    assert (agents["builtin"]["available"], agents["builtin"]["installed"]) == (True, True)
    assert agents["builtin"]["default"] is True


def test_an_agent_is_added_and_removed(run: Run, home: Path) -> None:
    done = run("agents", "add", "mine", "--env", "A=b=c", "--sandbox", "local", "--", "prog", "--acp", "-v")
    assert done.returncode == 0, done.stderr
    expected = {"kind": "acp", "command": ["prog", "--acp", "-v"], "env": {"A": "b=c"}, "sandbox": "local"}
    assert tomllib.loads((home / "config.toml").read_text())["agents"]["mine"] == expected
    assert "mine" in run("agents", "list").stdout
    assert run("agents", "remove", "mine").returncode == 0
    assert "mine" not in (home / "config.toml").read_text()


def test_a_known_agent_keeps_its_kind(run: Run, home: Path) -> None:
    assert run("agents", "add", "claude", "--no-check", "--", "/opt/claude").returncode == 0
    assert tomllib.loads((home / "config.toml").read_text())["agents"]["claude"]["kind"] == "claude"
    assert run("agents", "add", "claude", "--force", "--no-check", "--kind", "acp", "--", "x").returncode == 0
    assert tomllib.loads((home / "config.toml").read_text())["agents"]["claude"]["kind"] == "acp"


def test_an_added_agent_is_tried_at_once(run: Run, home: Path) -> None:
    done = run("agents", "add", "mine", "--", *agent()["command"])
    assert done.returncode == 0
    assert "mine: ok in" in done.stdout
    assert "can: " in done.stdout


def test_an_agent_that_does_not_answer_is_added_and_that_is_told(run: Run, home: Path) -> None:
    done = run("agents", "add", "mine", "--", "/bin/sh", "-c", "echo no key >&2; exit 3")
    assert (done.returncode, "mine: failed" in done.stdout, "no key" in done.stdout) == (0, True, True)
    assert "`agents remove mine` removes it" in done.stderr
    assert "mine" in (home / "config.toml").read_text()


def test_a_program_that_is_not_there_yet_is_named(run: Run, home: Path) -> None:
    assert "there is no program prog" in run("agents", "add", "mine", "--", "prog").stderr


def test_a_remote_agent_is_added_by_its_url(run: Run, home: Path) -> None:
    assert run("agents", "add", "far", "--no-check", "--url", "wss://example.org/acp").returncode == 0
    added = tomllib.loads((home / "config.toml").read_text())["agents"]["far"]
    assert added == {"kind": "remote", "url": "wss://example.org/acp"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["add", "mine"], "give either a command (with --kind) or --url"),
        (["add", "mine", "--url", "ws://x", "prog"], "give either a command (with --kind) or --url"),
        (["add", "rpc", "prog"], "the name is reserved"),
        (["add", "a b", "prog"], "a name has letters, digits, - and _ only"),
        (["add", "mine", "--env", "A", "--", "prog"], '--env takes KEY=VALUE, not "A"'),
        (["add", "mine", "--sandbox", "boks", "--", "prog"], 'there is no sandbox "boks"'),
        (["remove", "mine"], 'there is no agent "mine" in it'),
        (["remove", "gemini"], '"gemini" is known without configuration'),
        (["check", "gemni"], 'there is no agent "gemni": did you mean gemini?'),
    ],
)
def test_bad_input_changes_nothing(run: Run, home: Path, arguments: list[str], message: str) -> None:
    done = run("agents", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not (home / "config.toml").exists()


def test_capabilities_are_named_when_they_are_on() -> None:
    advertised = {
        "loadSession": True,
        "promptCapabilities": {"image": True, "audio": False},
        "sessionCapabilities": {"list": {}, "fork": None},
        "_meta": {"x": True},
    }
    assert capabilities(advertised) == ["loadSession", "promptCapabilities.image", "sessionCapabilities.list"]
