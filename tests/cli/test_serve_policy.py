"""`dragoman serve` and the examples of its rules."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

from support.gateway_process import toml

Run = Callable[..., subprocess.CompletedProcess[str]]
LS = {"name": "listing", "decision": "allow", "command": [["ls"]]}


def test_serve_refuses_rules_that_fail_their_examples(run: Run, home: Path) -> None:
    (home / "config.toml").write_text(toml({"policy": {"rules": [{**LS, "not_match": ["ls -l"]}]}}))
    done = run("serve", "--port", "0")
    assert done.returncode == 2
    assert str(home / "config.toml") in done.stderr and "listing" in done.stderr
    assert "make `command` narrower or remove the example" in done.stderr
