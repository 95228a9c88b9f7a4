"""`dragoman doctor`."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

Run = Callable[..., subprocess.CompletedProcess[str]]


def stub(programs: Path, name: str, script: str) -> None:
    (programs / name).write_text(f"#!/bin/sh\n{script}\n")
    (programs / name).chmod(0o755)


def kinds(run: Run) -> dict[str, Any]:
    return {each["kind"]: each for each in json.loads(run("doctor", "--json").stdout)["kinds"]}


def test_on_a_bare_machine_it_says_what_to_install(run: Run) -> None:
    found = kinds(run)
    assert found["local"]["works"] is True
    assert found["command"]["works"] is True
    assert "apt install bubblewrap" in found["bubblewrap"]["detail"]
    for kind in ("podman", "docker", "ssh"):
        assert found[kind]["works"] is False
        assert "not on PATH" in found[kind]["detail"]


def test_it_repeats_what_a_tool_says(run: Run, programs: Path) -> None:
    stub(programs, "bwrap", "echo 'bwrap: No permissions to create new namespace' >&2; exit 1")
    stub(programs, "docker", "echo 'Cannot connect to the Docker daemon' >&2; exit 1")
    stub(programs, "podman", "exit 0")
    found = kinds(run)
    assert "No permissions to create new namespace" in found["bubblewrap"]["detail"]
    assert "user namespaces" in found["bubblewrap"]["detail"]
    assert "Cannot connect to the Docker daemon" in found["docker"]["detail"]
    assert found["podman"]["works"] is True


def test_its_tables_have_headings(run: Run) -> None:
    headings = [line.split("  ")[0] for line in run("doctor").stdout.splitlines() if line[:1].isupper()]
    assert headings == ["STORE", "SANDBOX KIND"]
    assert run("doctor").stdout.split("\n")[0].split() == ["STORE", "ABOUT", "WHAT", "WHAT", "TO", "DO"]


def test_it_says_what_root_means(run: Run, programs: Path) -> None:
    stub(programs, "bwrap", "exit 0")
    found = kinds(run)
    assert found["bubblewrap"]["works"] is True
    is_root = os.geteuid() == 0
    assert ("no capabilities" in found["bubblewrap"]["detail"]) is is_root
    assert ("ordinary user" in found["bubblewrap"]["detail"]) is is_root
    assert ("all rights of root" in found["local"]["detail"]) is is_root


def test_configured_sandboxes_are_tried_with_their_settings(run: Run, programs: Path, home: Path) -> None:
    stub(programs, "podman", '[ "$1" = info ] || exit 1')
    stub(programs, "ssh", "echo 'nobody@far: Permission denied (publickey).' >&2; exit 255")
    (home / "config.toml").write_text(
        '[sandboxes.box]\nkind = "podman"\nimage = "some/image"\n'
        '[sandboxes.far]\nkind = "ssh"\nhost = "far"\n'
        '[sandboxes.cai]\nkind = "command"\ncommand = ["cai", "exec", "{agent...}"]\n'
    )
    done = run("doctor")
    assert done.returncode == 1
    assert "podman pull some/image" in done.stdout
    assert "Permission denied (publickey)" in done.stdout
    assert "cai is not on PATH" in done.stdout


def test_all_is_well(run: Run, home: Path) -> None:
    (home / "config.toml").write_text('[sandboxes.plain]\nkind = "local"\n')
    assert run("doctor").returncode == 0
