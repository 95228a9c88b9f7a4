"""What of this machine reaches a box: variables by name, login files one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dragoman.agents.environment import QUIET
from dragoman.agents.known import KNOWN
from dragoman.config.model import AgentConfig
from dragoman.sandbox.allowlist import (
    GENERAL,
    LOGIN_FILES,
    LOGIN_VARIABLES,
    TOOL,
    allowed,
    login_files,
    login_of,
)
from support.gateway_process import Start
from support.sandboxes.sandbox_kinds import Kind, boxed_agent

HOST = {"LANG": "C", "LC_ALL": "C", "AWS_SECRET_ACCESS_KEY": "x", "ANTHROPIC_API_KEY": "k", "LANGUISH": "x"}


def test_only_named_variables_pass() -> None:
    assert allowed(HOST, GENERAL) == {"LANG": "C", "LC_ALL": "C"}
    assert allowed(HOST, LOGIN_VARIABLES["claude"]) == {"ANTHROPIC_API_KEY": "k"}
    assert allowed(HOST, LOGIN_VARIABLES["codex"]) == {}
    assert allowed(HOST, ["AWS_*"]) == {"AWS_SECRET_ACCESS_KEY": "x"}


WITHOUT_A_FILE = {
    "builtin": "has no login of its own",
    "kiro": "keeps it in one database with its conversations",
    **dict.fromkeys(("copilot", "cursor", "kimi", "cline", "droid", "junie"), "no file of it alone is known"),
}


def test_the_tables_have_a_row_for_every_known_agent() -> None:
    assert LOGIN_VARIABLES.keys() == KNOWN.keys()
    assert LOGIN_FILES.keys() == KNOWN.keys() - WITHOUT_A_FILE.keys()


@pytest.mark.parametrize(
    ("name", "settings", "login"),
    [
        ("work", {"kind": "claude", "command": ["claude"]}, "claude"),
        ("work", {"kind": "codex", "command": ["/opt/bin/codex"]}, "codex"),
        ("work", {"command": ["/opt/bin/gemini", "--acp"]}, "gemini"),
        ("work", {"command": ["claude-agent-acp"]}, "claude-acp"),
        ("gemini", {"command": ["my-wrapper"]}, "gemini"),
        ("mine", {"command": ["my-agent"]}, "mine"),
    ],
)
def test_an_agent_is_known_by_its_kind_or_program(name: str, settings: dict[str, Any], login: str) -> None:
    assert login_of(name, AgentConfig(**settings)) == login


def test_login_files_are_the_agents_own_unless_others_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".codex").mkdir()
    (tmp_path / ".codex" / "auth.json").touch()
    (tmp_path / "mine").touch()
    assert login_files("codex", None) == [tmp_path / ".codex" / "auth.json"]
    assert login_files("claude", None) == []
    assert login_files("codex", []) == []
    assert login_files("codex", ["~/mine", "~/missing"]) == [tmp_path / "mine"]


async def test_a_known_agent_is_logged_in_inside_and_cannot_change_its_login(
    dragoman: Start, bubblewrap: Kind, project: Path, tmp_path: Path
) -> None:
    house = tmp_path / "house"
    (house / ".codex").mkdir(parents=True)
    (house / ".codex" / "auth.json").write_text("a login")
    (house / ".codex" / "history.jsonl").write_text("secrets")
    host = {"HOME": str(house), "OPENAI_API_KEY": "mine", "ANTHROPIC_API_KEY": "not for codex"}
    gateway = await dragoman(
        "acp",
        "codex",
        agents={"codex": boxed_agent(sandbox="box")},
        sandboxes={"box": bubblewrap.sandbox},
        env=host,
    )
    await gateway.initialize()
    session = await gateway.new_session(project)
    turn = await gateway.prompt(
        session,
        "env OPENAI_API_KEY\nenv ANTHROPIC_API_KEY\nsh cat ~/.codex/auth.json\n"
        "sh echo x > ~/.codex/auth.json\nsh ls ~/.codex",
    )
    assert turn.reports("env") == ["mine", None]
    read, written, listed = turn.reports("sh")
    assert read["out"] == "a login"
    assert written["code"] != 0
    assert listed["out"] == "auth.json"
    assert (house / ".codex" / "auth.json").read_text() == "a login"


def test_the_how_to_lists_every_variable_that_a_box_gets() -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "sandbox.md").read_text()
    large = {name for name in (*GENERAL, *TOOL) if not name.islower()}
    assert [name for name in sorted({*large, *QUIET}) if f"`{name}`" not in page] == []
