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


def test_a_lifetime_without_a_date_is_refused(run: Run) -> None:
    for lifetime in ("1e308", "nan", "inf", "-1d", "0d", "999999w", "99999d"):
        done = run("tokens", "create", "x", "--expires", lifetime)
        assert done.returncode == 2, lifetime
        assert "Traceback" not in done.stderr
    assert "100 years at most" in done.stderr
    assert json.loads(run("tokens", "list", "--json").stdout) == []


def test_a_stored_token_without_a_date_does_not_break_the_list(run: Run, home: Path) -> None:
    token = {"role": "control", "hash": "0" * 64, "created": 1e308}
    ends = {"far": 1e308, "before": -1e308, "past": 5.0, "late": 9e15}
    tokens = [{**token, "name": name, "expires": end} for name, end in ends.items()]
    (home / "tokens.json").write_text(json.dumps({"tokens": [*tokens, {**token, "name": "ever"}]}))
    shown = json.loads(run("tokens", "list", "--json").stdout)
    assert {each["name"]: each["expired"] for each in shown} == {**dict.fromkeys(ends, True), "ever": False}
    listed = run("tokens", "list")
    assert listed.returncode == 0, listed.stderr
    assert "far" in listed.stdout
    assert run("tokens", "create", "far").returncode == 0, "one that is over may be replaced"
    assert run("tokens", "revoke", "late").returncode == 0
