"""What was skipped is counted at the end of a run, and CI does not pass over a missing kind."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.sandboxes.sandbox_kinds import make_image

TESTS = Path(__file__).parent
SKIPPING = """
import pytest
from support import prerequisites
from support.prerequisites import SkipAccount

@pytest.mark.parametrize("number", range(3))
def test_in_a_container(number):
    prerequisites.skip("podman", "it is not installed")

def test_of_another_system():
    pytest.skip("only root makes devices")

def test_that_runs():
    pass
"""


def run(folder: Path, *words: str, ci: str) -> tuple[int, str]:
    (folder / "test_some.py").write_text(SKIPPING)
    plugin = "from support.prerequisites import SkipAccount\ndef pytest_configure(config):\n"
    plugin += (
        "    if not hasattr(config, 'workerinput'):\n        config.pluginmanager.register(SkipAccount())\n"
    )
    (folder / "conftest.py").write_text(plugin)
    environment = {**os.environ, "CI": ci, "PYTHONPATH": str(TESTS)}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(folder),
        *words,
        str(folder),
    ]
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def test_reasons_are_counted_in_the_last_lines(tmp_path: Path) -> None:
    code, printed = run(tmp_path, ci="")
    assert code == 0
    *_, counted, other, hint, last = printed.strip().splitlines()
    assert counted.split(maxsplit=1) == ["3", "NO PODMAN: it is not installed (apt-get install podman runc)"]
    assert other.split(maxsplit=1) == ["1", "only root makes devices"]
    assert hint == "NO PODMAN: get it with: apt-get install podman runc"
    assert "1 passed, 4 skipped" in last


@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["alone", "side by side"])
def test_ci_fails_and_names_the_kind(tmp_path: Path, workers: list[str]) -> None:
    code, printed = run(tmp_path, *workers, ci="true")
    assert code == 1
    assert "NO PODMAN: CI must have it: this run has failed" in printed
    assert run(tmp_path, *workers, "-k", "not container", ci="true")[0] == 0, "other skips are no failure"


def program(folder: Path, name: str, script: str) -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def test_one_package_that_is_missing_keeps_none_of_the_others_away(tmp_path: Path) -> None:
    """apt installs nothing at all when it does not know one of the names."""
    timeout = shutil.which("timeout")
    assert timeout is not None
    (tmp_path / "timeout").symlink_to(timeout)
    program(tmp_path, "id", "echo 0")
    refuse = 'case "$*" in *podman*) exit 100;; esac'
    copy = 'case "$*" in install*bubblewrap*) printf "#!/bin/sh\\n" > "$HERE/bwrap"; chmod=1;; esac'
    program(tmp_path, "apt-get", f'{refuse}\n{copy}\n[ -z "$chmod" ] || /bin/chmod 755 "$HERE/bwrap"')
    environment = {"PATH": str(tmp_path), "HERE": str(tmp_path)}
    done = subprocess.run(
        ["/bin/sh", str(TESTS / "install_parts.sh")],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert "podman" in done.stdout.splitlines()[-1]
    assert "bubblewrap" not in done.stdout.splitlines()[-1]


def test_podman_that_cannot_run_here_fails_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, "podman", "echo no namespaces >&2; exit 125")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(pytest.skip.Exception) as skipped:
        make_image("any")
    assert "no namespaces" in str(skipped.value)
    assert not str(skipped.value).startswith("NO PODMAN")  # which is what a run under CI fails for
