"""The files in `deploy/` that other programs read: as far as those programs are here, they have the last word."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from dragoman.cli.serve.command import serve

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
COMMAND = re.compile(r"dragoman\b[\"', ]+serve([^\n\]]*)")


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_systemd_finds_nothing_to_object_to(unit: Path, tmp_path: Path) -> None:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("NOT TESTED: systemd-analyze is not installed, so the units in deploy/ were not verified")
    # Where the program will be is not known here; everything else is judged as it stands.
    text = re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", unit.read_text(), flags=re.MULTILINE)
    copy = tmp_path / unit.name
    copy.write_text(re.sub(r"^(User|Group)=.*\n", "", text, flags=re.MULTILINE))
    scope = [] if "User=" in text else ["--user"]
    done = subprocess.run(
        [program, "verify", *scope, "--man=no", str(copy)],
        env={
            **os.environ,
            "XDG_RUNTIME_DIR": str(tmp_path),
        },  # without one the user's units are not even read
        capture_output=True,
        text=True,
        timeout=60,
    )
    complaints = [line for line in done.stderr.splitlines() if copy.name in line]
    assert complaints == []
    if "Failed to" not in done.stderr:  # no manager to ask in this environment
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("file", [*UNITS, DEPLOY / "docker" / "Dockerfile"], ids=lambda file: file.name)
def test_what_is_started_is_a_command_that_exists(file: Path) -> None:
    options = re.findall(r"--[a-z-]+", " ".join(COMMAND.findall(file.read_text())))
    assert options
    known = {option for parameter in serve.params for option in parameter.opts}
    assert set(options) <= known


def test_units_stop_later_than_the_gateway_needs() -> None:
    for unit in UNITS:
        seconds = re.search(r"^TimeoutStopSec=(\d+)$", unit.read_text(), re.MULTILINE)
        assert seconds is not None and int(seconds[1]) >= 15, unit


def test_the_image_runs_as_nobody_special_and_is_watched() -> None:
    lines = (DEPLOY / "docker" / "Dockerfile").read_text().splitlines()
    stages = [index for index, line in enumerate(lines) if line.startswith("FROM ")]
    final = lines[stages[-1] :]
    assert len(stages) == 2
    assert [line.split()[1] for line in final if line.startswith("USER ")] == ["dragoman"]
    assert any(line.startswith("HEALTHCHECK ") for line in final)
    assert not any("TOKEN" in line for line in lines)


def test_the_gateways_help_knows_its_options() -> None:
    assert CliRunner().invoke(serve, ["--help"]).exit_code == 0


def test_the_image_is_made_from_the_locks_and_sources_come_last() -> None:
    lines = (DEPLOY / "docker" / "Dockerfile").read_text()
    assert (
        re.search(r"^ARG BASE=", lines, re.MULTILINE)
        and len(re.findall(r"^FROM \$\{BASE\}", lines, re.M)) == 2
    )
    installs = [line for line in lines.splitlines() if "pip install" in line or "pip wheel" in line]
    assert installs and all("--require-hashes" in line or "--no-index" in line for line in installs)
    order = [
        lines.index(text) for text in ("COPY requirements/", "COPY web/build.py", "COPY web web", "COPY src")
    ]
    assert order == sorted(order)


@pytest.mark.parametrize("name", ["image", "build", "fuzz"])
def test_every_lock_has_hashes_and_the_versions_that_were_tested(name: str) -> None:
    requirements = DEPLOY.parent / "requirements"
    pinned = _pinned(requirements / f"{name}.lock")
    tested = _pinned(requirements / "dev.lock")
    assert pinned and all(hashes for _, hashes in pinned.values())
    assert {key for key in pinned if key in tested and pinned[key] != tested[key]} == set()
    assert name != "image" or set(pinned) <= set(tested), "make lock"


def _pinned(lock: Path) -> dict[str, tuple[str, frozenset[str]]]:
    entries = re.findall(
        r"^([\w.-]+)==([^\s;\\]+)([^\n]*\\\n(?:\s+--hash=\S+(?: \\)?\n)*)", lock.read_text(), re.M
    )
    return {name: (version, frozenset(re.findall(r"--hash=(\S+)", rest))) for name, version, rest in entries}
