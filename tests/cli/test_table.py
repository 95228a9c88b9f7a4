"""Tables on a terminal."""

from __future__ import annotations

import json

from support.command_line import CommandLine


def test_the_last_column_is_never_lost_on_a_terminal(shell: CommandLine) -> None:
    with shell.terminal("agents", "list") as terminal:
        assert terminal.end() == 0
        words = " ".join(terminal.shown.split())
    agents = json.loads(shell.run("agents", "list", "--json").stdout)
    advice = [each["install"] for each in agents if not each["installed"]]
    assert advice and all(each in words for each in advice)
