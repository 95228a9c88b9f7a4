"""`dragoman tokens`."""

from __future__ import annotations

import json
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

Run = Callable[..., subprocess.CompletedProcess[str]]


def test_a_token_is_created_listed_and_revoked(run: Run, home: Path) -> None:
    made = run("tokens", "create", "phone", "--role", "observe", "--expires", "30d", "--turns", "2")
    secret = made.stdout.strip()
    assert made.returncode == 0, made.stderr
    assert secret.startswith("dgt_") and "\n" not in secret
    assert secret not in made.stderr
    file = home / "tokens.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert secret not in file.read_text()
    (shown,) = json.loads(run("tokens", "list", "--json").stdout)
    assert (shown["name"], shown["role"], shown["expired"]) == ("phone", "observe", False)
    assert shown["quotas"] == {"turns": 2}
    assert "hash" not in shown
    assert run("tokens", "list").stdout.splitlines()[1].split()[:2] == ["phone", "observe"]
    assert run("tokens", "revoke", "phone").returncode == 0
    assert json.loads(run("tokens", "list", "--json").stdout) == []


def test_mistakes_are_explained(run: Run) -> None:
    assert run("tokens", "revoke", "nobody").returncode == 2
    taken = run("tokens", "create", "admin")
    assert (taken.returncode, "taken" in taken.stderr) == (2, True)
    lifetime = run("tokens", "create", "x", "--expires", "soon")
    assert (lifetime.returncode, "30d" in lifetime.stderr) == (2, True)
