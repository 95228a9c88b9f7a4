"""No box shows Dragoman's own folders, whatever name they are given: they hold the token and the sockets."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from dragoman.agents.custody import Custody
from dragoman.config.model import AgentConfig, Config
from dragoman.config.paths import Paths
from dragoman.config.sandbox_model import SandboxConfig
from dragoman.sandbox import Sandboxes
from dragoman.sandbox.own_folders import bound
from dragoman.wire.errors import RpcError
from support.gateway_process import GatewayProcess
from support.rpc_peer import RpcFailure
from support.sandboxes.sandbox_kinds import Kind, boxed_agent

OWN = ("state", "configuration", "runtime")


@pytest.fixture
def own(tmp_path: Path) -> dict[str, Path]:
    """Each apart from the others, as the XDG directories are."""
    folders = {what: tmp_path / f"{what}-home" / "dragoman" for what in OWN}
    for folder in folders.values():
        folder.mkdir(parents=True)
    return folders


def find(own: dict[str, Path], workspace: Path, **sandbox: Any) -> None:
    """Ask for the box of a workspace; raises what refuses it."""
    paths = Paths(
        own["configuration"] / "config.toml", own["state"], own["runtime"], own["state"].parent / "c"
    )
    settings = SandboxConfig(**{"kind": "bubblewrap", **sandbox})
    config = Config(sandboxes={"box": settings})
    boxes = Sandboxes(config, paths, Custody(), environ={"PATH": os.environ["PATH"]})
    agent = AgentConfig(command=["agent"], sandbox="box")
    assert boxes.find("mine", agent, str(workspace), str(workspace)) is not None


def refusal(own: dict[str, Path], workspace: Path, **sandbox: Any) -> RpcError:
    with pytest.raises(RpcError) as caught:
        find(own, workspace, **sandbox)
    assert caught.value.code == -32602
    assert "box" in caught.value.message
    return caught.value


@pytest.mark.parametrize("what", OWN)
def test_as_the_workspace(own: dict[str, Path], what: str) -> None:
    folder = own[what]
    for workspace in (folder, folder.parent):  # itself, and one that holds it
        message = refusal(own, workspace).message
        assert f"the workspace {workspace}" in message
        assert f"Dragoman's {what} folder {folder}" in message
    (folder / "below").mkdir()
    assert f"lies in Dragoman's {what} folder {folder}" in refusal(own, folder / "below").message


@pytest.mark.parametrize("what", OWN)
@pytest.mark.parametrize("key", ["mounts", "read_only"])
def test_as_a_mount(own: dict[str, Path], project: Path, what: str, key: str) -> None:
    for shown in (own[what], own[what].parent):
        message = refusal(own, project, **{key: [f"{shown}:/somewhere"]}).message
        assert str(shown) in message
        assert str(own[what]) in message


def test_behind_a_symlink(own: dict[str, Path], tmp_path: Path, project: Path) -> None:
    link = tmp_path / "innocent"
    link.symlink_to(own["state"].parent)
    for failure in (refusal(own, link), refusal(own, project, mounts=[str(link)])):
        assert str(link) in failure.message
        assert str(own["state"]) in failure.message
    # and the other way round: what Dragoman calls its folder is a symlink into the workspace
    (project / "kept").mkdir()
    own["runtime"].rmdir()
    own["runtime"].symlink_to(project / "kept")
    assert str(own["runtime"]) in refusal(own, project).message


def test_before_it_exists(own: dict[str, Path], project: Path) -> None:
    own["state"] = project / "not" / "yet"
    assert str(project / "not" / "yet") in refusal(own, project).message


def test_as_a_login_file(own: dict[str, Path], project: Path) -> None:
    (own["state"] / "tokens.json").write_text("{}")
    message = refusal(own, project, login_files=[str(own["state"] / "tokens.json")]).message
    assert "login_files" in message


def test_among_the_systems_own_folders(own: dict[str, Path], project: Path, monkeypatch: pytest.MonkeyPatch,
                                       tmp_path: Path) -> None:  # fmt: skip
    """As with DRAGOMAN_HOME=/opt/dragoman, since /opt is shown to every agent."""
    monkeypatch.setattr("dragoman.sandbox.bubblewrap.SYSTEM", (str(own["state"].parent),))
    assert str(own["state"]) in refusal(own, project).message


@pytest.mark.parametrize("kind", ["podman", "docker"])
@pytest.mark.parametrize(
    "words",
    [
        ["-v", "{0}:/x"],
        ["-v{0}:/x:ro"],
        ["-v={0}:/x"],
        ["-itv{0}:/x"],
        ["-dv", "{0}:/x"],
        ["--volume", "{0}:/x"],
        ["--volume={0}:/x"],
        ["--mount", "type=bind,source={0},target=/x"],
        ["--mount=type=bind,target=/x,src={0},readonly"],
    ],
)
def test_as_a_volume_of_a_container(own: dict[str, Path], project: Path, kind: str, words: list[str]) -> None:
    options = ["--rm", *(word.format(own["state"].parent) for word in words)]
    message = refusal(own, project, kind=kind, image="i", options=options).message
    assert str(own["state"].parent) in message
    assert str(own["state"]) in message
    assert "sandboxes.box.options" in message


def test_as_a_mount_of_a_tool(own: dict[str, Path], project: Path) -> None:
    command = ["bwrap", "--bind", "/", "/", "--bind", "{workspace}", "{workspace}", "--", "{agent...}"]
    assert "sandboxes.box.command" in refusal(own, project, kind="command", command=command).message
    command = ["tool", "--ro-bind-try", str(own["state"]), "/x", "{agent...}"]
    assert str(own["state"]) in refusal(own, project, kind="command", command=command).message


def test_what_shows_nothing_of_ours_is_not_refused(own: dict[str, Path], project: Path) -> None:
    find(own, project)
    find(own, project, mounts=[str(project / "src")], read_only=["/usr/share"])
    find(own, project, kind="docker", image="i", options=["-v", "state:/x", "--mount", "type=tmpfs,dst=/y"])
    # On another machine it is another folder, and without a box there is nothing to keep from anybody.
    find(own, own["state"], kind="ssh", host="far")
    find(own, own["state"].parent, kind="local")


def test_arguments_that_show_nothing() -> None:
    words = [
        "--verbose",
        "-vvv",
        "-itv",
        "named:/x",
        "-eVAR=/etc:/x",
        "-w/av/etc:/x",
        "-v",
        "named:/x",
        "--volume=named:/x",
        "--mount",
        "type=volume,src=name,dst=/x",
        "-v",
    ]
    assert list(bound(words)) == []
    assert list(bound([])) == []


async def test_no_session_begins_in_such_a_box(bubblewrap: Kind, project: Path) -> None:
    """The whole way, with the workspace around DRAGOMAN_HOME."""
    home = project / "deep" / "home"
    agents = {"scripted": boxed_agent(sandbox="box"), "beside": boxed_agent()}
    config = {"agents": agents, "sandboxes": {"box": bubblewrap.sandbox}, "default_agent": "beside"}
    async with await GatewayProcess.start(home, "acp", config=config) as gateway:
        await gateway.initialize()
        for folder in (project, project / "deep", home, home / "run"):
            with pytest.raises(RpcFailure) as caught:
                await gateway.new_session(folder, _meta={"dragoman": {"agent": "scripted"}})
            assert caught.value.code == -32602
            assert caught.value.data["sandbox"] == "box"
            assert str(home) in caught.value.message
        await gateway.new_session(project)  # without a box there is nothing to refuse


async def test_an_agents_installation_around_them(bubblewrap: Kind, project: Path, tmp_path: Path) -> None:
    """Its program is found beside `lib`, so the folder above would be shown, with Dragoman's in it."""
    prefix = tmp_path / "tools"
    (prefix / "bin").mkdir(parents=True)
    (prefix / "lib").mkdir()
    program = prefix / "bin" / "agent"
    program.write_text("#!/bin/sh\nexec sleep 1000\n")
    program.chmod(0o755)
    agents = {"mine": {"kind": "acp", "command": [str(program)], "sandbox": "box"}, "beside": boxed_agent()}
    config = {"agents": agents, "sandboxes": {"box": {"kind": "bubblewrap"}}, "default_agent": "beside"}
    async with await GatewayProcess.start(prefix / "home", "acp", config=config) as gateway:
        await gateway.initialize()
        with pytest.raises(RpcFailure) as caught:
            await gateway.new_session(project, _meta={"dragoman": {"agent": "mine"}})
        assert str(prefix) in caught.value.message
        assert str(prefix / "home") in caught.value.message
