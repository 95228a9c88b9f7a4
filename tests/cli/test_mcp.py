"""`dragoman mcp`."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

Run = Callable[..., subprocess.CompletedProcess[str]]

TABLES = """
[mcp.files]
command = ["files-server", "--root", "/a b"]
env = {LEVEL = "hidden-value"}
agents = ["claude"]

[mcp.team]
url = "https://mcp.example/"
secrets = {Authorization = "env:TEAM_KEY"}
enabled = false
"""


def test_the_list_shows_who_gets_a_server_and_no_values(run: Run, home: Path) -> None:
    (home / "config.toml").write_text(TABLES)
    listed = run("mcp", "list")
    assert listed.returncode == 0, listed.stderr
    rows = listed.stdout.splitlines()
    assert (
        rows[1].split()[:1] == ["files"] and "files-server --root '/a b'" in rows[1] and "claude" in rows[1]
    )
    assert "https://mcp.example/" in rows[2] and rows[2].split()[-1] == "off"
    as_json = run("mcp", "list", "--json").stdout
    files, team = json.loads(as_json)
    assert (files["env"], files["agents"]) == (["LEVEL"], ["claude"])
    assert (team["transport"], team["secrets"]) == ("http", {"Authorization": "env:TEAM_KEY"})
    assert "hidden-value" not in listed.stdout + as_json


def test_without_servers_it_says_where_they_belong(run: Run) -> None:
    listed = run("mcp", "list")
    assert (listed.returncode, listed.stdout) == (0, "")
    assert "[mcp.NAME]" in listed.stderr
