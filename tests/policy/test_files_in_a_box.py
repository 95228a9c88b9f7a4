"""The administrator's file and the user's as whole programs find them, in a namespace where /etc is the test's own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support.sandboxes.sandbox_kinds import machine_folders

DENY = '[[policy.rules]]\nname = "no rm"\ndecision = "deny"\ncommand = [["rm"]]\n'
ALLOW = '[[policy.rules]]\nname = "listing"\ndecision = "allow"\ncommand = [["ls"]]\n'
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def boxed(tmp_path: Path) -> Run:
    """Runs `dragoman policy` as root of a user namespace; `file` and `folder` are modes of the administrator's."""
    if sys.platform != "linux" or shutil.which("bwrap") is None:
        pytest.skip("needs bubblewrap")
    etc, home = tmp_path / "etc", tmp_path / "home"
    etc.mkdir()
    home.mkdir()
    (etc / "policy.toml").write_text(DENY)
    (home / "config.toml").write_text(ALLOW)

    def run(
        *words: str, file: int = 0o644, folder: int = 0o755, config: int = 0o600
    ) -> subprocess.CompletedProcess[str]:
        (etc / "policy.toml").chmod(file)
        etc.chmod(folder)
        (home / "config.toml").chmod(config)
        box = ["bwrap", "--unshare-user", "--uid", "0", "--gid", "0", *machine_folders()]
        box += ["--tmpfs", "/etc", "--bind", str(etc), "/etc/dragoman", "--dev", "/dev", "--proc", "/proc"]
        box += ["--bind", str(tmp_path), str(tmp_path)]
        return subprocess.run(
            [*box, sys.executable, "-m", "dragoman", "policy", *words],
            env={**os.environ, "DRAGOMAN_HOME": str(home)},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    if run("show").stderr.startswith("bwrap:"):
        pytest.skip("user namespaces are not allowed here")
    return run


def test_the_administrators_rules_hold_wherever_the_users_home_is(boxed: Run) -> None:
    assert boxed("test", "rm x").stdout.startswith("deny: denied by rule no rm of /etc/dragoman/policy.toml")
    shown = boxed("show")
    assert "no rm" in shown.stdout and shown.stderr == ""


@pytest.mark.parametrize("modes", [{"file": 0o666}, {"file": 0o664}, {"folder": 0o777}])
def test_an_administrators_file_that_others_may_write_is_ignored_and_told(
    boxed: Run, modes: dict[str, int]
) -> None:
    shown = boxed("show", **modes)
    assert "no rm" not in shown.stdout
    assert "/etc/dragoman/policy.toml: ignored" in shown.stderr
    assert "chmod 644" in shown.stderr, "what to do"
    assert boxed("test", "rm x", **modes).stdout.startswith("ask:")


def test_a_users_file_that_others_may_write_allows_nothing_and_is_told(boxed: Run) -> None:
    assert boxed("test", "ls").stdout.startswith("allow:")
    tried = boxed("test", "ls", config=0o666)
    assert tried.stdout.startswith("ask:")
    assert "config.toml" in tried.stderr and "chmod" in tried.stderr


def test_a_broken_administrators_file_is_named(boxed: Run, tmp_path: Path) -> None:
    (tmp_path / "etc" / "policy.toml").write_text('[[policy.rules]]\ndecision = "perhaps"\n')
    tried = boxed("test", "ls")
    assert tried.returncode != 0 and "/etc/dragoman/policy.toml" in tried.stderr


def test_a_workspace_file_that_allows_is_refused(boxed: Run, tmp_path: Path) -> None:
    (tmp_path / ".dragoman").mkdir()
    (tmp_path / ".dragoman" / "config.toml").write_text(
        '[[policy.rules]]\ndecision = "allow"\nkind = ["execute"]\n'
    )
    assert not boxed("test", "make x").stdout.startswith("allow:")
