"""npm and uv, scripted: what they are told, what they get to see, and what is made of what they did."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from dragoman.config.paths import Paths
from dragoman.gateway.ports.acts import unrecorded
from dragoman.registry.errors import NeedsScripts, RegistryError
from dragoman.registry.install import Installer, Wish
from registry.conftest import entry, installed
from support.registry.server import Site

NPM = """#!/usr/bin/env python3
import json, os, sys
from pathlib import Path
log = Path(__file__).with_name("log")
with log.open("a") as out:
    out.write(json.dumps({"args": sys.argv[1:], "env": dict(os.environ), "cwd": os.getcwd()}) + "\\n")
mode = Path(__file__).with_name("mode")
if mode.exists():
    sys.exit(mode.read_text())
if sys.argv[1] == "view":
    print('"3.0.0"')
elif sys.argv[1] == "install":
    name, _, version = sys.argv[-1].rpartition("@")
    folder = Path("node_modules", name)
    folder.mkdir(parents=True)
    facts = {"version": version, "bin": {"robot": "cli.js", "other": "o.js"}, "scripts": {"postinstall": "x"}}
    (folder / "package.json").write_text(json.dumps(facts))
    (folder / "cli.js").write_text("#!/bin/sh\\n")
    Path("node_modules/.bin").mkdir()
    Path("node_modules/.bin/robot").symlink_to(Path("..", name, "cli.js"))
    lock = {"packages": {"node_modules/" + name: {"integrity": "sha512-" + version}}}
    Path("node_modules/.package-lock.json").write_text(json.dumps(lock))
"""
UV = """#!/usr/bin/env python3
import json, os, sys
from pathlib import Path
with Path(__file__).with_name("log").open("a") as out:
    out.write(json.dumps({"args": sys.argv[1:], "env": dict(os.environ), "cwd": os.getcwd()}) + "\\n")
programs = Path(os.environ["UV_TOOL_BIN_DIR"])
programs.mkdir()
(programs / "robot").write_text("#!/bin/sh\\n")
"""


@pytest.fixture
def managers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, text in (("npm", NPM), ("uv", UV)):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")
    monkeypatch.setenv("DRAGOMAN_SERVE_AUTH_TOKEN", "secret")
    return folder


def asked(managers: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (managers / "log").read_text().splitlines()]


def offer(work: Installer, site: Site, **distribution: Any) -> Installer:
    site.put_registry(entry(**distribution))
    work.catalog.refresh(unrecorded, "local")
    return work


def npx(work: Installer, site: Site, package: str = "@x/robot@2.0.0", **facts: Any) -> Installer:
    return offer(work, site, npx={"package": package, "args": ["--acp"], **facts})


def test_npm_installs_an_exact_version_without_scripts(
    work: Installer, site: Site, managers: Path, paths: Paths
) -> None:
    done = installed(npx(work, site))
    (call,) = asked(managers)
    assert call["args"][0] == "install" and call["args"][-1] == "@x/robot@2.0.0"
    assert "--ignore-scripts" in call["args"] and "--save-exact" in call["args"]
    assert call["cwd"] == str(paths.agents_dir / "robot/2.0.0"), "no workspace in sight"
    assert "secret" not in call["env"].values() and not any("DRAGOMAN" in name for name in call["env"])
    assert done.agent.command == [str(paths.agents_dir / "robot/2.0.0/node_modules/.bin/robot"), "--acp"]
    assert done.agent.hash == "sha512-2.0.0" and done.scripts_left
    assert Path(done.agent.command[0]).stat().st_mode & stat.S_IXUSR


def test_scripts_are_run_only_if_allowed_and_of_the_package_alone(
    work: Installer, site: Site, managers: Path
) -> None:
    done = installed(npx(work, site), scripts=True)
    install, rebuild = asked(managers)
    assert "--ignore-scripts" in install["args"]
    assert rebuild["args"][0] == "rebuild" and rebuild["args"][-1] == "@x/robot"
    assert done.agent.scripts and not done.scripts_left


def test_an_agent_that_needs_scripts_is_not_installed_without(work: Installer, managers: Path) -> None:
    with pytest.raises(NeedsScripts, match="install claude --scripts"):
        work.install(Wish(work.catalog.find("claude")))
    assert not (managers / "log").exists()


def test_an_agent_with_its_own_protocol_keeps_it(work: Installer, managers: Path) -> None:
    (managers / "npm").write_text(NPM.replace('"robot"', '"codex"').replace(".bin/robot", ".bin/codex"))
    done = work.install(Wish(work.catalog.find("codex"), "1.2.3"))
    assert done.agent.kind == "codex" and done.agent.version == "1.2.3"
    assert [Path(word).name for word in done.agent.command] == ["codex"]


def test_the_newest_version_is_asked_for_and_pinned(work: Installer, site: Site, managers: Path) -> None:
    assert installed(npx(work, site), "latest").agent.version == "3.0.0"
    assert [call["args"][0] for call in asked(managers)] == ["view", "install"]


def test_the_same_version_with_another_content_is_refused(
    work: Installer, site: Site, managers: Path
) -> None:
    installed(npx(work, site))
    (managers / "npm").write_text(NPM.replace('"sha512-"', '"sha512-evil-"'))
    with pytest.raises(RegistryError, match="replaced without a new version"):
        installed(work, again=True)
    assert work.records.all()["robot"].hash == "sha512-2.0.0"


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("npm error code ETARGET", "there is no version @x/robot@2.0.0"),
        ("npm error code E404", "there is no package"),
        ("npm error code ENOSPC", "the disk is full"),
        ("boom", r"npm failed \(exit code 1\): boom"),
    ],
)
def test_failures_of_npm_are_told(
    work: Installer, site: Site, managers: Path, paths: Paths, said: str, why: str
) -> None:
    (managers / "mode").write_text(said)
    with pytest.raises(RegistryError, match=why):
        installed(npx(work, site))
    assert not (paths.agents_dir / "robot").exists()


def test_npm_has_to_finish_in_time(paths: Paths, site: Site, managers: Path) -> None:
    from dragoman.config.sections.registry import RegistryConfig

    (managers / "npm").write_text("#!/bin/sh\nsleep 60 & wait\n")
    settings = RegistryConfig(url=f"{site.url}/registry.json", timeout=0.3)
    with pytest.raises(RegistryError, match=r"did not finish within .* \(registry.timeout\)"):
        installed(npx(Installer(paths, settings, unrecorded, "local"), site))


def test_uv_installs_into_an_environment_of_its_own(
    work: Installer, site: Site, managers: Path, paths: Paths
) -> None:
    done = installed(offer(work, site, uvx={"package": "robot", "args": ["acp"]}))
    (call,) = asked(managers)
    assert call["args"][:2] == ["tool", "install"] and call["args"][-1] == "robot==1.0.0"
    assert "--no-build" in call["args"], "a source package runs its own code"
    folder = paths.agents_dir / "robot/1.0.0"
    assert call["env"]["UV_TOOL_DIR"] == str(folder / "tools")
    assert done.agent.command == [str(folder / "bin/robot"), "acp"]


@pytest.mark.parametrize(("source", "how"), [("npm", "nodejs.org"), ("uv", "docs.astral.sh/uv")])
def test_a_missing_package_manager_is_told(
    work: Installer, site: Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, source: str, how: str
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    package = {"package": "robot"}
    with pytest.raises(RegistryError, match=how):
        installed(offer(work, site, **{"npx" if source == "npm" else "uvx": package}))


def test_a_program_with_a_hash_comes_first_then_a_package(
    work: Installer, site: Site, managers: Path
) -> None:
    from dragoman.registry.install import choose_source, this_platform

    archive = {"archive": f"{site.url}/a.tgz", "cmd": "a"}
    both: dict[str, Any] = {"npx": {"package": "robot"}, "binary": {this_platform(): archive}}
    assert choose_source(offer(work, site, **both).catalog.find("robot")) == "npm"
    both["binary"] = {this_platform(): {**archive, "sha256": "0" * 64}}
    assert choose_source(offer(work, site, **both).catalog.find("robot")) == "binary"
    assert choose_source(work.catalog.find("robot"), "npm") == "npm"


def test_a_hostile_package_name_reaches_no_package_manager(
    work: Installer, site: Site, managers: Path
) -> None:
    with pytest.raises(RegistryError, match="not the name of a package"):
        installed(npx(work, site, "git+https://host/x"))
    assert not (managers / "log").exists()
