"""Boxes of every kind that works on this machine."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.sandboxes import sandbox_kinds
from support.sandboxes.sandbox_kinds import LINUX_PODMAN, Kind, Sshd


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A workspace: a git project with a folder and a file in it."""
    folder = tmp_path / "my project"
    (folder / ".git").mkdir(parents=True)
    (folder / "src").mkdir()
    (folder / "src" / "a.txt").write_text("hello\n")
    return folder


@pytest.fixture(scope="session")
def image() -> Iterator[str]:
    name = f"localhost/dragoman-test-{uuid.uuid4().hex[:8]}"
    sandbox_kinds.make_image(name)
    yield name
    sandbox_kinds.remove_image(name)


@pytest.fixture(scope="session")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    server = sandbox_kinds.start_sshd(tmp_path_factory.mktemp("ssh") / "sshd")
    yield server
    server.process.terminate()
    server.process.wait()


@pytest.fixture
def bubblewrap() -> Kind:
    return sandbox_kinds.bubblewrap()


@pytest.fixture
def podman(image: str, project: Path) -> Iterator[Kind]:
    yield sandbox_kinds.podman(image)
    listed = subprocess.run(
        [*LINUX_PODMAN, "ps", "-aq", "--filter", f"label=dragoman.workspace={project}"],
        capture_output=True,
        text=True,
        check=False,
    )
    for container in listed.stdout.split():
        subprocess.run([*LINUX_PODMAN, "rm", "-ft", "0", container], capture_output=True, check=False)


@pytest.fixture
def ssh(sshd: Sshd, project: Path, tmp_path: Path) -> Kind:
    """The other machine is this one, where the workspace has another name."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.symlink_to(project)
    return sshd.kind(str(elsewhere))


@pytest.fixture
def command(project: Path, tmp_path: Path) -> Kind:
    """A tool like `cai exec`; what it makes is no box, but the workspace has another name in it."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.symlink_to(project)
    tool = tmp_path / "tool"
    tool.write_text('#!/bin/sh\n[ "$1" = --workspace ] && [ -d "$2" ] || exit 9\nshift 3\nexec "$@"\n')
    tool.chmod(0o755)
    template = [str(tool), "--workspace", "{workspace}", "--", "{agent...}"]
    return Kind(
        "command", {"kind": "command", "command": template, "workspace": str(elsewhere)}, str(elsewhere)
    )


@pytest.fixture(params=["bubblewrap", "podman", "ssh", "command"])
def kind(request: pytest.FixtureRequest) -> Kind:
    """Each kind in turn."""
    found = request.getfixturevalue(request.param)
    assert isinstance(found, Kind)
    return found
