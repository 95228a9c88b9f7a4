"""What is wrong with a box is said with its name and the fix."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from pathlib import Path

import pytest

from support.gateway_process import Start, Table
from support.rpc_peer import RpcFailure
from support.sandboxes.sandbox_kinds import LINUX_PODMAN, Kind, Sshd, boxed_agent


async def refusal(dragoman: Start, sandbox: Table, project: Path, **more: object) -> RpcFailure:
    """The answer to the first thing that needs the box."""
    agents = {"scripted": boxed_agent(sandbox="box"), "beside": boxed_agent()}
    gateway = await dragoman("acp", agents=agents, sandboxes={"box": sandbox}, default_agent="beside", **more)
    await gateway.initialize()
    meta = {"dragoman": {"agent": "scripted"}}
    with pytest.raises(RpcFailure) as caught:
        await gateway.new_session(project, _meta=meta)
    assert "box" in caught.value.message
    return caught.value


async def test_a_missing_image(dragoman: Start, podman: Kind, project: Path) -> None:
    failure = await refusal(dragoman, {**podman.sandbox, "image": "localhost/nobody/made:this"}, project)
    assert failure.code == -32603
    assert failure.data["reason"] == "agent_unavailable"
    assert "localhost/nobody/made:this" in failure.message
    assert "pull" in failure.message


@pytest.mark.parametrize("kind", ["podman", "docker"])
async def test_an_engine_that_is_down(dragoman: Start, project: Path, tmp_path: Path, kind: str) -> None:
    engine = tmp_path / "engine"
    engine.write_text(
        "#!/bin/sh\necho 'Cannot connect to the daemon at unix:///run/x.sock. Is it running?' >&2; exit 125\n"
    )
    engine.chmod(0o755)
    failure = await refusal(dragoman, {"kind": kind, "image": "i", "engine": [str(engine)]}, project)
    assert "cannot reach its engine" in failure.message
    assert "Cannot connect to the daemon" in failure.message


async def test_an_engine_that_is_not_installed(dragoman: Start, project: Path) -> None:
    failure = await refusal(dragoman, {"kind": "docker", "image": "i", "engine": ["no-such-engine"]}, project)
    assert "no-such-engine" in failure.message


async def test_bubblewrap_that_is_not_installed(dragoman: Start, project: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bin"
    bare.mkdir()
    failure = await refusal(dragoman, {"kind": "bubblewrap"}, project, env={"PATH": str(bare)})
    assert "bwrap" in failure.message
    assert "apt install bubblewrap" in failure.message


async def test_a_key_that_is_refused(dragoman: Start, sshd: Sshd, project: Path) -> None:
    sandbox = sshd.kind(str(project)).sandbox
    options = [option.replace("/key", "/stranger") for option in sandbox["options"]]
    failure = await refusal(dragoman, {**sandbox, "options": options}, project)
    assert "was refused by 127.0.0.1" in failure.message
    assert "Check the key" in failure.message


async def test_a_host_that_is_not_there(dragoman: Start, sshd: Sshd, project: Path) -> None:
    sandbox = sshd.kind(str(project)).sandbox
    options = ["1" if option == str(sshd.port) else option for option in sandbox["options"]]
    failure = await refusal(dragoman, {**sandbox, "options": options}, project)
    assert "cannot reach 127.0.0.1" in failure.message


async def test_a_workspace_that_is_not_on_the_other_machine(
    dragoman: Start, sshd: Sshd, project: Path
) -> None:
    failure = await refusal(dragoman, sshd.kind("/nowhere/at/all").sandbox, project)
    assert "is not on 127.0.0.1" in failure.message


@pytest.mark.rule("G-152")
async def test_a_workspace_outside_of_the_allowed_roots(dragoman: Start, project: Path) -> None:
    failure = await refusal(dragoman, {"kind": "bubblewrap", "roots": ["/srv/work", "/opt"]}, project)
    assert failure.code == -32602
    assert failure.data == {"reason": "workspace", "sandbox": "box", "workspace": str(project)}
    assert "sandboxes.box.roots" in failure.message


async def test_the_home_folder_is_no_workspace(dragoman: Start, project: Path) -> None:
    home = project.parent
    failure = await refusal(dragoman, {"kind": "bubblewrap"}, home, env={"HOME": str(project)})
    assert "home folder" in failure.message


async def test_a_folder_that_the_box_does_not_show(dragoman: Start, bubblewrap: Kind, project: Path) -> None:
    gateway = await dragoman("acp", "scripted", **bubblewrap.config())
    await gateway.initialize()
    with pytest.raises(
        RpcFailure, match=r"/srv does not exist in the sandbox box.*sandboxes\.box\.mounts"
    ) as caught:
        await gateway.new_session(project, additionalDirectories=["/srv"])
    assert caught.value.code == -32602
    (project / "link").symlink_to("/srv")
    with pytest.raises(RpcFailure, match="does not exist in the sandbox box"):
        await gateway.new_session(project / "link")


async def test_a_program_that_the_box_does_not_have(dragoman: Start, podman: Kind, project: Path) -> None:
    config = podman.config()
    config["agents"]["scripted"]["command"] = ["no-such-agent"]
    gateway = await dragoman("acp", "scripted", **config)
    with pytest.raises(RpcFailure) as caught:
        await gateway.initialize()
    assert "in the sandbox box" in caught.value.message
    assert "no-such-agent" in caught.value.message


async def test_a_secret_that_is_not_there(dragoman: Start, bubblewrap: Kind, project: Path) -> None:
    config = bubblewrap.config(secrets={"KEY": "file:/nowhere/key"})
    gateway = await dragoman("acp", "scripted", **config)
    with pytest.raises(RpcFailure, match="KEY comes from the file /nowhere/key"):
        await gateway.initialize()


async def test_a_container_that_dies_in_the_middle_of_a_turn(
    dragoman: Start, podman: Kind, project: Path
) -> None:
    gateway = await dragoman("acp", "scripted", **podman.config())
    await gateway.initialize()
    session = await gateway.new_session(project)
    turn = asyncio.ensure_future(gateway.start_prompt(session, "say here\nsleep-until-cancel"))
    await gateway.text(session, "here")
    remove(project)
    error = (await turn).error
    assert error is not None
    assert "in the sandbox box" in error.message
    assert "container" in error.message
    again = await gateway.prompt(session, "sh pwd")  # a new container, a new agent
    assert again.report("sh")["out"] == podman.inside


async def test_a_bubble_that_bursts_in_the_middle_of_a_turn(
    dragoman: Start, bubblewrap: Kind, project: Path
) -> None:
    gateway = await dragoman("acp", "scripted", **bubblewrap.config())
    await gateway.initialize()
    session = await gateway.new_session(project)
    turn = asyncio.ensure_future(gateway.start_prompt(session, "say here\nsleep-until-cancel"))
    await gateway.text(session, "here")
    os.kill(bubble_of(gateway.process.pid), signal.SIGKILL)
    error = (await turn).error
    assert error is not None
    assert "in the sandbox box" in error.message


def bubble_of(gateway: int) -> int:
    """The outer process of the newest box; the gateway's watcher starts them."""
    watcher = subprocess.run(
        ["pgrep", "-P", str(gateway), "-f", "watcher.py"], capture_output=True, text=True, check=True
    )
    boxes = subprocess.run(
        ["pgrep", "-P", watcher.stdout.strip(), "bwrap"], capture_output=True, text=True, check=True
    )
    return int(boxes.stdout.split()[-1])


def remove(project: Path) -> None:
    listed = subprocess.run(
        [*LINUX_PODMAN, "ps", "-q", "--filter", f"label=dragoman.workspace={project}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert listed.stdout.split()
    subprocess.run([*LINUX_PODMAN, "rm", "-ft", "0", *listed.stdout.split()], capture_output=True, check=True)
