"""`dragoman doctor`."""

from __future__ import annotations

import http.server
import json
import os
import re
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import dragoman
from dragoman.agents.known import KNOWN, known_layer
from dragoman.agents.probe import ProbeResult
from dragoman.cli.doctor.__main__ import table
from dragoman.cli.doctor.checks import agents, clock, configuration, platform, serve
from dragoman.cli.doctor.finding import Check, Context, Finding, Reported
from dragoman.cli.doctor.repairing import repair_all
from dragoman.cli.doctor.running import run_checks
from dragoman.config.load import load
from dragoman.config.paths import find_paths
from support.pseudo_terminal import Terminal

Run = Callable[..., subprocess.CompletedProcess[str]]


def stub(programs: Path, name: str, script: str) -> None:
    (programs / name).write_text(f"#!/bin/sh\n{script}\n")
    (programs / name).chmod(0o755)


def kinds(run: Run) -> dict[str, Any]:
    found = json.loads(run("doctor", "sandboxes", "--json").stdout)["findings"]
    return {each["about"]: each for each in found}


def test_on_a_bare_machine_it_says_what_to_install(run: Run) -> None:
    found = kinds(run)
    assert "not usable" not in found["local"]["detail"] + found["command"]["detail"]
    assert "apt install bubblewrap" in found["bubblewrap"]["detail"]
    for kind in ("podman", "docker", "ssh"):
        assert found[kind]["level"] == "ok", "nothing uses it"
        assert "not usable here" in found[kind]["detail"] and "not on PATH" in found[kind]["detail"]


def test_it_repeats_what_a_tool_says(run: Run, programs: Path) -> None:
    stub(programs, "bwrap", "echo 'bwrap: No permissions to create new namespace' >&2; exit 1")
    stub(programs, "docker", "echo 'Cannot connect to the Docker daemon' >&2; exit 1")
    stub(programs, "podman", "exit 0")
    found = kinds(run)
    assert "No permissions to create new namespace" in found["bubblewrap"]["detail"]
    assert "user namespaces" in found["bubblewrap"]["detail"]
    assert "Cannot connect to the Docker daemon" in found["docker"]["detail"]
    assert found["podman"]["detail"] == "its engine answers"


def test_it_says_what_root_means(run: Run, programs: Path) -> None:
    stub(programs, "bwrap", "exit 0")
    found = kinds(run)
    is_root = os.geteuid() == 0
    assert ("no capabilities" in found["bubblewrap"]["detail"]) is is_root
    assert ("ordinary user" in found["bubblewrap"]["detail"]) is is_root
    assert ("root" in found) is is_root
    assert ("all rights of root" in found["local"]["detail"]) is is_root


def test_configured_sandboxes_are_tried_with_their_settings(run: Run, programs: Path, home: Path) -> None:
    stub(programs, "podman", '[ "$1" = info ] || exit 1')
    stub(programs, "ssh", "echo 'nobody@far: Permission denied (publickey).' >&2; exit 255")
    (home / "config.toml").write_text(
        '[sandboxes.box]\nkind = "podman"\nimage = "some/image"\n'
        '[sandboxes.far]\nkind = "ssh"\nhost = "far"\n'
        '[sandboxes.cai]\nkind = "command"\ncommand = ["cai", "exec", "{agent...}"]\n'
    )
    done = run("doctor", "sandboxes")
    assert done.returncode == 1
    assert "podman pull some/image" in done.stdout
    assert "Permission denied (publickey)" in done.stdout
    assert "cai is not on PATH" in done.stdout


# -- running checks


def context(home: Path, **more: Any) -> Context:
    paths = find_paths({"DRAGOMAN_HOME": str(home)})
    return Context(paths, load(paths, known=known_layer(), environ={}), **more)


def test_a_check_that_hangs_or_fails_is_a_line(home: Path) -> None:
    ended = threading.Event()

    def hangs(_: Context) -> Iterator[Finding]:
        yield Finding("ok", "one", "found before")
        ended.wait(60)

    def fails(_: Context) -> Iterator[Finding]:
        yield Finding("ok", "two", "found before")
        raise ValueError("https://me:secretsecret@host/")

    checks = [Check("hanging", "", hangs, 0.3), Check("failing", "", fails, 30.0)]
    found = run_checks(checks, context(home))
    ended.set()
    *_, late, two, failed = found  # what the first one found before may come too late under load
    assert (late.check, late.finding.level, two.finding.about) == ("hanging", "warning", "two")
    assert (failed.check, failed.finding.level) == ("failing", "error")
    assert "did not end within 0.3 s" in late.finding.detail
    assert "doctor hanging --timeout 3" in late.finding.fix
    assert "ValueError" in failed.finding.detail and "secretsecret" not in failed.finding.detail


def test_a_failed_repair_is_told_and_the_next_one_is_made(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAGOMAN_HOME", str(home))

    def fails() -> str:
        raise OSError("no such luck")

    wanted = [
        Reported("files", Finding("error", "a", "is open", "close it", fails)),
        Reported("files", Finding("error", "b", "is open", "close it", lambda: "closed")),
    ]
    first, second = (one.finding for one in repair_all(wanted))
    assert (first.level, first.detail) == ("error", "is open; not repaired: no such luck")
    assert (second.level, second.detail, second.fix) == ("fixed", "closed", "")


# -- single checks


@pytest.mark.parametrize(
    ("key", "line"),
    [
        ("serve.port", 2),
        ("agents.gemini.comand", 5),
        ("agents.gemini.env.KEY", 6),
        ("policy.rules[1].kind", 11),
        ("policy.rules[1]", 10),
        ('agents."a.b".kind', 13),
        ("nothing.here", None),
    ],
)
def test_the_line_of_a_key(key: str, line: int | None) -> None:
    text = (
        '[serve]\nport = 1\n\n[agents.gemini]\ncomand = []\nenv.KEY = "x"\n# [no]\n[[policy.rules]]\nkind = []\n'
        '[[policy.rules]]\nkind = ["x"]\n[agents."a.b"]\nkind = "y"\n'
    )
    assert configuration.line_of(text, key) == line


def test_versions_known_to_work_are_those_of_the_documentation() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "compatibility.md").read_text()
    header = next(line for line in page.splitlines() if line.startswith("| Behaviour | "))
    listed = dict(re.findall(r"([a-z-]+) (\d[\d.]+)", header))
    named = {KNOWN[name].command[0]: version for name, version in agents.TESTED.items()}
    assert named == listed


ROW = {
    "name": "claude", "kind": "claude", "default": False, "program": "/bin/claude", "url": None, "command": ["claude"],
    "install": "npm install -g @anthropic-ai/claude-code", "login": "run `claude` once and log in", "loggedIn": True,
}  # fmt: skip
ANSWER = ProbeResult(True, None, 0.5, {"agentInfo": {"version": "2.1.325"}})


@pytest.mark.parametrize(
    ("facts", "result", "level", "detail", "fix"),
    [
        ({"version": None}, ANSWER, "ok", "2.1.325, answered in 0.5 s", ""),
        ({"version": "2.0.9"}, ANSWER, "warning", "older than 2.1.325", "npm install"),
        ({"version": "3.0"}, ANSWER, "ok", "newer than 2.1.325", ""),
        ({"version": "2.1.325", "loggedIn": False}, ANSWER, "warning", "not logged in", "run `claude`"),
        ({"version": None}, ProbeResult(False, "boom", 1, None), "error", "boom", "/bin/claude by hand"),
        ({"version": None}, None, "error", "is not on this machine", "npm install"),
    ],
)
def test_what_is_said_of_an_agent(
    facts: dict[str, Any], result: ProbeResult | None, level: str, detail: str, fix: str
) -> None:
    (found,) = agents.describe({**ROW, **facts}, result)
    assert (found.level, found.about) == (level, "agent claude")
    assert detail in found.detail and fix in found.fix


def test_wsl_1_and_disks_of_windows_are_named(home: Path) -> None:
    paths = replace(find_paths({"DRAGOMAN_HOME": str(home)}), state_dir=Path("/mnt/c/Users/me/dragoman"))
    on_windows = replace(context(home, workspace=Path("/mnt/c/code")), paths=paths)
    found = list(platform.wsl(on_windows, "4.4.0-19041-Microsoft"))
    assert [each.level for each in found] == ["error", "error", "warning"]
    assert "wsl --set-version" in found[0].fix and "DRAGOMAN_HOME" in found[1].fix
    found = list(platform.wsl(context(home), "5.15.153.1-microsoft-standard-WSL2"))
    assert [each.level for each in found] == ["ok"]


def test_macos_is_told_of_sandboxes_and_of_the_path_of_launchd(home: Path) -> None:
    bare = context(home, environ={"PATH": platform.LAUNCHD_PATH}, platform="darwin")
    found = {each.about: each for each in platform.macos(bare)}
    assert "bubblewrap" in found["sandboxes"].detail
    assert found["PATH"].level == "warning" and "whole path" in found["PATH"].fix
    assert not platform.ignores_case(home)


def test_a_clock_that_went_back_is_named(home: Path) -> None:
    log = home / "journal" / "dgm_a" / "1.log"
    log.parent.mkdir(parents=True)
    log.write_text("x")
    assert [each.level for each in clock.check(context(home))] == ["ok"]
    os.utime(log, (4e9, 4e9))
    (found,) = clock.check(context(home))
    assert found.level == "warning" and "dgm_a" in found.detail


@pytest.mark.parametrize(("term", "level"), [("dumb", "warning"), ("xterm-256color", "ok")])
def test_the_terminal(run: Run, home: Path, programs: Path, term: str, level: str) -> None:
    env = {**os.environ, "DRAGOMAN_HOME": str(home), "TERM": term, "LC_ALL": "C.UTF-8"}
    with Terminal("doctor", "terminal", env=env, cwd=home) as shown:
        assert shown.end() == 0, shown.shown
        assert f"{level:<7}" in shown.shown


def test_a_serve_of_another_version_is_named(home: Path) -> None:
    class Answering(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/healthz" else 404)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None: ...

    (home / "run").mkdir()
    file = home / "run" / "serve.json"
    with http.server.HTTPServer(("127.0.0.1", 0), Answering) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/"
        for version, level in (("0.0.1", "warning"), (dragoman.__version__, "ok")):
            file.write_text(json.dumps({"url": url, "pid": os.getpid(), "version": version}))
            (found,) = serve.check(context(home))
            assert found.level == level and version in found.detail
        server.shutdown()
    (found,) = serve.check(context(home))
    assert found.level == "error" and "does not answer" in found.detail and f"kill {os.getpid()}" in found.fix


def test_the_documentation_has_the_table_of_checks() -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "doctor.md").read_text()
    assert table() in page, "`python -m dragoman.cli.doctor docs/how-to/doctor.md` writes it"
