"""Tables on a terminal."""

from __future__ import annotations

import json

import pytest

from support.command_line import CommandLine


def test_the_last_column_is_never_lost_on_a_terminal(shell: CommandLine) -> None:
    with shell.terminal("agents", "list") as terminal:
        assert terminal.end() == 0
        words = " ".join(terminal.shown.split())
    agents = json.loads(shell.run("agents", "list", "--json").stdout)
    advice = [each["install"] for each in agents if not each["installed"]]
    assert advice and [each for each in advice if each not in words] == []


@pytest.mark.parametrize(
    ("flags", "env", "coloured"),
    [
        ([], {}, True),
        ([], {"NO_COLOR": "1"}, False),
        ([], {"TERM": "dumb"}, False),
        (["--color", "always"], {"NO_COLOR": "1"}, True),
        (["--color", "never"], {}, False),
    ],
)
def test_colours_are_a_choice(
    shell: CommandLine, flags: list[str], env: dict[str, str], coloured: bool
) -> None:
    usual = {name: value for name, value in shell.env.items() if name != "NO_COLOR"}
    shell.env = {**usual, "TERM": "xterm-256color", **env}
    with shell.terminal(*flags, "agents", "list") as terminal:
        assert terminal.end() == 0
        assert ("\x1b[" in terminal.raw) is coloured


def test_colours_go_into_a_pipe_only_if_they_are_wanted(shell: CommandLine) -> None:
    assert "\x1b" not in shell.run("agents", "list").stdout
