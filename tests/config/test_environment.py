"""`DRAGOMAN_SECTION_KEY` variables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dragoman.config.errors import ConfigError
from dragoman.config.load import Loaded

LoadWith = Callable[..., Loaded]


@pytest.mark.parametrize(
    ("variable", "text", "path", "value"),
    [
        ("DRAGOMAN_DEFAULT_AGENT", "gemini", "default_agent", "gemini"),
        ("DRAGOMAN_LIMITS_MAX_SESSIONS", "7", "limits.max_sessions", 7),
        ("DRAGOMAN_LIMITS_CANCEL_TIMEOUT", "2.5", "limits.cancel_timeout", 2.5),
        ("DRAGOMAN_SESSIONS_JOURNAL", "off", "sessions.journal", False),
        ("DRAGOMAN_SESSIONS_JOURNAL", "1", "sessions.journal", True),
        ("DRAGOMAN_SESSIONS_ON_DISCONNECT", "cancel", "sessions.on_disconnect", "cancel"),
    ],
)
def test_a_variable_is_read_by_the_type_of_its_key(
    load_with: LoadWith, variable: str, text: str, path: str, value: Any
) -> None:
    found: Any = load_with(env={variable: text}).config
    for part in path.split("."):
        found = getattr(found, part)
    assert found == value
    assert type(found) is type(value)


def test_lists_are_json_or_separated_by_commas(load_with: LoadWith) -> None:
    for text in ('["gemini", "--acp", "--x=a,b"]', "gemini, --acp"):
        command = load_with(env={"DRAGOMAN_AGENTS_GEMINI_COMMAND": text}).config.agents["gemini"].command
        assert command[:2] == ["gemini", "--acp"]


def test_a_variable_finds_names_that_it_cannot_spell(load_with: LoadWith) -> None:
    env = {"DRAGOMAN_AGENTS_MY_AGENT_SERVE_FS": "true"}
    loaded = load_with(user='[agents.my-agent]\ncommand = ["x"]\n', env=env)
    assert loaded.config.agents["my-agent"].serve_fs is True


def test_a_table_is_json(load_with: LoadWith) -> None:
    loaded = load_with(env={"DRAGOMAN_AGENTS_QWEN_ENV": '{"A": "b"}'})
    assert loaded.config.agents["qwen"].env == {"A": "b"}


@pytest.mark.parametrize(
    ("variable", "text", "message"),
    [
        ("DRAGOMAN_LIMITS_MAX_SESIONS", "1", "there is no such setting; did you mean"),
        ("DRAGOMAN_HOEM", "/x", 'did you mean "DRAGOMAN_HOME"'),
        (
            "DRAGOMAN_LIMITS_MAX_SESSIONS",
            "lots",
            "limits.max_sessions: expected an integer of at least 1, got",
        ),
        ("DRAGOMAN_SESSIONS_JOURNAL", "maybe", "sessions.journal: expected true or false, got"),
        ("DRAGOMAN_AGENTS_QWEN_ENV", "A=b", "agents.qwen.env: expected a table of strings, got"),
    ],
)
def test_a_mistake_names_the_variable(load_with: LoadWith, variable: str, text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_with(env={variable: text})
    assert str(caught.value).startswith(f"environment variable {variable}: ")
    assert message in str(caught.value)


def test_the_special_variables_are_no_settings(load_with: LoadWith) -> None:
    special = {"DRAGOMAN_HOME": "/x", "DRAGOMAN_ACP_TEST_MODE": "0", "DRAGOMAN_ACP_DIRECT_SPAWN": "1"}
    assert load_with(env=special).config.default_agent == "builtin"


def test_the_marks_of_a_dragoman_around_this_one_are_no_settings(load_with: LoadWith) -> None:
    load_with(env={"DRAGOMAN_CUSTODY": "m4rk", "DRAGOMAN_BOX": "b0x"})
