"""`dragoman agents search | install | update | uninstall | outdated | refresh`, as a person runs them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.audit.read import Query, query
from dragoman.config.paths import Paths
from dragoman.registry.install import this_platform
from registry.conftest import entry
from support.pseudo_terminal import Terminal
from support.registry.archives import tar
from support.registry.server import Site

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(paths: Paths, site: Site, tmp_path: Path) -> Run:
    env = {name: value for name, value in os.environ.items() if not name.startswith("DRAGOMAN_")}
    env |= {"DRAGOMAN_HOME": str(paths.state_dir), "DRAGOMAN_REGISTRY_URL": f"{site.url}/registry.json"}

    def run_it(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "dragoman", *words]
        return subprocess.run(
            command,
            env=env,
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )

    return run_it


def put(site: Site, version: str, content: bytes | None = None) -> None:
    url = site.put(f"/{version}.tgz", tar() if content is None else content)
    site.put_registry(entry(version, binary={this_platform(): {"archive": url, "cmd": "./agent"}}))


def test_from_refresh_to_uninstall(run: Run, site: Site, paths: Paths) -> None:
    put(site, "1.0.0")
    assert run("agents", "refresh").stdout.startswith("fetched: 1 agents from http://127.0.0.1:")
    (row,) = json.loads(run("agents", "search", "test", "robot", "--json").stdout)
    assert (row["name"], row["version"], row["installed"], row["from"]) == (
        "robot",
        "1.0.0",
        None,
        "registry",
    )
    done = run("agents", "install", "robot")
    assert done.returncode == 0 and done.stdout.startswith("installed robot 1.0.0 (http://127.0.0.1")
    assert "robot is unpinned" in done.stderr
    put(site, "1.1.0")
    assert run("agents", "refresh", "--json").returncode == 0
    late = run("agents", "outdated", "--json")
    assert late.returncode == 1
    assert json.loads(late.stdout) == [{"name": "robot", "installed": "1.0.0", "available": "1.1.0"}]
    (updated,) = json.loads(run("agents", "update", "--json").stdout)
    assert (updated["before"], updated["version"], updated["pinned"]) == ("1.0.0", "1.1.0", False)
    rows = {row["name"]: row for row in json.loads(run("agents", "list", "--json").stdout)}
    assert rows["robot"]["origin"] == "installed agent" and rows["robot"]["source"] == "binary"
    assert rows["robot"]["pinned"] is False and rows["robot"]["version"] == "1.0.0", "what the script prints"
    refused = run("agents", "remove", "robot")
    assert "agents uninstall robot" in refused.stderr
    assert run("agents", "uninstall", "robot").stdout == "uninstalled robot 1.1.0\n"
    kinds = recorded(paths)
    assert [
        kind for kind in kinds if kind in ("agent_installed", "agent_uninstalled", "registry_refreshed")
    ] == [
        "registry_refreshed",
        "agent_installed",
        "registry_refreshed",
        "agent_installed",
        "agent_uninstalled",
    ]


def recorded(paths: Paths) -> list[str]:
    return [record["kind"] for record in query(paths.audit_dir, Query())]


def test_failures_are_one_sentence_and_recorded(run: Run, site: Site, paths: Paths) -> None:
    put(site, "1.0.0", tar(files={"../x": b""}))
    assert run("agents", "refresh").returncode == 0
    failed = run("agents", "install", "robot")
    assert failed.returncode == 1 and "leads outside" in failed.stderr and failed.stdout == ""
    assert recorded(paths)[-2:] == ["agent_installed", "act_failed"]
    unknown = run("agents", "install", "claud")
    assert unknown.returncode == 1 and "did you mean claude" in unknown.stderr


def test_scripts_are_asked_for_on_a_terminal(paths: Paths, tmp_path: Path) -> None:
    env: dict[str, Any] = {**os.environ, "DRAGOMAN_HOME": str(paths.state_dir)}
    with Terminal("agents", "install", "claude", env=env, cwd=tmp_path) as terminal:
        terminal.until("Run them?")
        terminal.type("n\n")
        terminal.until("--scripts")


def test_the_first_use_offers_what_is_not_installed(
    run: Run, site: Site, paths: Paths, tmp_path: Path
) -> None:
    put(site, "1.0.0", tar(files={"agent": b"#!/bin/sh\nexit 7\n"}))
    assert run("agents", "refresh").returncode == 0
    without = run("exec", "-a", "robot", "hello")
    assert without.returncode == 2 and "install it: dragoman agents install robot" in without.stderr
    env: dict[str, Any] = {**os.environ, "DRAGOMAN_HOME": str(paths.state_dir)}
    with Terminal("exec", "-a", "robot", "hello", env=env, cwd=tmp_path) as terminal:
        terminal.until("Robot is not installed. Install version 1.0.0 (a program) now?")
        terminal.type("y\n")
        terminal.until("installed robot 1.0.0")
    rows = {row["name"]: row for row in json.loads(run("agents", "list", "--json").stdout)}
    assert rows["robot"]["source"] == "binary"
    (paths.agents_dir / "installed.json").unlink()
    with Terminal("chat", "robot", env=env, cwd=tmp_path) as terminal:
        terminal.until("Robot is not installed. Install version 1.0.0 (a program) now?")
        terminal.type("y\n")
        terminal.until("installed robot 1.0.0")
