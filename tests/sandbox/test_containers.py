"""One container per workspace: made on first use, shared, labelled, removed or kept; docker by its command lines."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from dragoman.sandbox.podman import is_far
from support.agents.agent_log import AgentLog
from support.clients.sample_answers import EVERYTHING
from support.gateway_process import Start
from support.sandboxes.sandbox_kinds import LINUX_PODMAN, Kind, boxed_agent

DOCKER = """#!/usr/bin/env python3
import json, os, sys
words = sys.argv[1:]
with open(os.path.join(os.path.dirname(__file__), "docker.log"), "a") as log:
    log.write(json.dumps(words) + "\\n")
made = os.path.join(os.path.dirname(__file__), "made")
if words[:2] == ["container", "inspect"]:
    if not os.path.exists(made):
        sys.exit("Error: No such container")
    print("true")
elif words[0] == "run":
    open(made, "w").close()
    if "--another-was-faster" in words:
        sys.exit('Error: the container name "x" is already in use by 0123456789ab')
    print("0123456789ab")
elif words[0] == "exec":
    words.pop(0)
    while words[0].startswith("--"):
        option = words.pop(0)
        if option == "--workdir":
            os.chdir(words.pop(0))
        elif option == "--env":
            name, equals, value = words.pop(0).partition("=")
            if equals:
                os.environ[name] = value
    os.execvp(words[1], words[1:])
"""


def containers(project: Path) -> list[dict[str, object]]:
    listed = subprocess.run(
        [*LINUX_PODMAN, "ps", "-a", "--format", "json", "--filter", f"label=dragoman.workspace={project}"],
        capture_output=True,
        check=True,
    )
    found = json.loads(listed.stdout)
    assert isinstance(found, list)
    return found


async def test_all_sessions_of_a_workspace_share_one_container(
    dragoman: Start, podman: Kind, project: Path
) -> None:
    gateway = await dragoman("acp", "scripted", **podman.config())
    await gateway.initialize()
    outputs = set()
    for folder in (project, project / "src"):
        session = await gateway.new_session(folder)
        outputs.add((await gateway.prompt(session, "sh cat /etc/hostname")).report("sh")["out"])
    assert len(outputs) == 1
    (only,) = containers(project)
    assert only["Labels"]["dragoman.sandbox"] == "box"  # type: ignore[index]
    await gateway.stop()
    assert containers(project) == []


async def test_a_container_that_is_kept_is_used_again(dragoman: Start, podman: Kind, project: Path) -> None:
    for count in (1, 2):
        gateway = await dragoman("acp", "scripted", **podman.config(sandbox={"keep": True}))
        await gateway.initialize()
        session = await gateway.new_session(project)
        turn = await gateway.prompt(session, "sh echo x >> /root/kept; wc -l < /root/kept")
        assert turn.report("sh")["out"] == str(count)
        await gateway.stop()
    assert len(containers(project)) == 1


async def test_a_container_that_another_gateway_uses_is_not_removed(
    dragoman: Start, podman: Kind, project: Path
) -> None:
    one = await dragoman("acp", "scripted", **podman.config())
    two = await dragoman("acp", "scripted", **podman.config())
    sessions = []
    for gateway in (one, two):
        await gateway.initialize()
        sessions.append(await gateway.new_session(project))
    await one.stop()
    assert (await two.prompt(sessions[1], "sh echo alive")).report("sh")["out"] == "alive"


async def test_docker_is_asked_in_its_own_words(dragoman: Start, project: Path, tmp_path: Path) -> None:
    sandbox = {
        "kind": "docker",
        "image": "registry/agent:1",
        "engine": [str(stub(tmp_path))],
        "memory": "2g",
        "cpus": 1.5,
        "processes": 99,
        "user": "1000:1000",
        "hosts": ["host.docker.internal:host-gateway"],
        "network": False,
        "options": ["--cap-drop", "ALL"],
        "read_only": ["/opt:/tools"],
        "login_files": [],
    }
    agent = boxed_agent(sandbox="box", env={"TOKEN": "a secret"})
    gateway = await dragoman("acp", "scripted", agents={"scripted": agent}, sandboxes={"box": sandbox})
    await gateway.initialize()
    (tmp_path / "made").unlink()
    session = await gateway.new_session(project)
    turn = await gateway.prompt(session, "env TOKEN")
    assert turn.report("env") == "a secret"
    log = [json.loads(line) for line in (tmp_path / "docker.log").read_text().splitlines()]
    assert "a secret" not in json.dumps(log)
    run = [words for words in log if words[0] == "run"][-1]
    for expected in (
        ["--volume", f"{project}:{project}:rw"],
        ["--volume", "/opt:/tools:ro"],
        ["--label", f"dragoman.workspace={project}"],
        ["--memory", "2g"],
        ["--cpus", "1.5"],
        ["--pids-limit", "99"],
        ["--user", "1000:1000"],
        ["--network", "none"],
        ["--add-host", "host.docker.internal:host-gateway"],
        ["--cap-drop", "ALL"],
        ["--entrypoint", "sh"],
    ):
        assert any(run[at : at + 2] == expected for at in range(len(run))), (expected, run)
    assert "--cap-add" not in run
    assert run[-3:-1] == ["registry/agent:1", "-c"]
    entered = [words for words in log if words[0] == "exec" and agent["command"][0] in words][-1]
    assert entered[:4] == ["exec", "--interactive", "--workdir", str(project)]
    await gateway.stop()
    last = json.loads((tmp_path / "docker.log").read_text().splitlines()[-1])
    assert last[:2] == ["rm", "--force"]
    assert len(last) == 3


async def test_a_container_has_few_capabilities_and_cannot_get_more(
    dragoman: Start, project: Path, tmp_path: Path
) -> None:
    sandbox = {
        "kind": "docker",
        "image": "i",
        "engine": [str(stub(tmp_path))],
        "options": ["--cap-add", "SYS_PTRACE"],
    }
    agents = {"scripted": boxed_agent(sandbox="box")}
    gateway = await dragoman("acp", "scripted", agents=agents, sandboxes={"box": sandbox})
    await gateway.initialize()
    await gateway.new_session(project)
    log = [json.loads(line) for line in (tmp_path / "docker.log").read_text().splitlines()]
    run = next(words for words in log if words[0] == "run")
    pairs = [tuple(run[at : at + 2]) for at in range(len(run))]
    assert ("--cap-drop", "ALL") in pairs
    assert ("--security-opt", "no-new-privileges") in pairs
    kept = {value for option, value in pairs[:-1] if option == "--cap-add"}
    assert "SYS_PTRACE" in kept  # what the operator asks for in `options`
    assert not kept & {"SYS_ADMIN", "MKNOD", "NET_RAW", "SETFCAP", "SYS_CHROOT", "DAC_READ_SEARCH"}


async def test_in_a_container_no_capability_changes_the_machine(
    dragoman: Start, podman: Kind, project: Path
) -> None:
    gateway = await dragoman("acp", "scripted", **podman.config())
    await gateway.initialize()
    session = await gateway.new_session(project)
    told = (await gateway.prompt(session, "sh grep -E '^(CapBnd|NoNewPrivs)' /proc/self/status")).report("sh")
    status = dict(line.split(":\t") for line in told["out"].splitlines())
    assert status["NoNewPrivs"] == "1"
    kept = {bit for bit in range(64) if int(status["CapBnd"], 16) >> bit & 1}
    assert kept <= {0, 1, 3, 4, 5, 6, 7, 10}, kept  # files, processes, users and low ports of its own


@pytest.mark.parametrize(
    ("engine", "variable", "far"),
    [
        (["docker"], None, False),
        (["docker"], "unix:///run/docker.sock", False),
        (["docker"], "tcp://127.0.0.1:2375", False),
        (["docker"], "ssh://core@localhost:2222/run/podman.sock", False),
        (["docker"], "ssh://me@build.example", True),
        (["docker"], "tcp://10.0.0.9:2375", True),
        (["docker", "-H", "tcp://build.example:2375"], None, True),
        (["podman", "--remote", "--url=ssh://me@build.example/run/podman.sock"], None, True),
    ],
)
def test_an_engine_on_another_machine_is_known_by_its_address(
    engine: list[str], variable: str | None, far: bool
) -> None:
    assert is_far(engine, {"DOCKER_HOST": variable} if variable else {}) is far


async def test_the_files_of_an_engine_on_another_machine_are_not_served(
    dragoman: Start, project: Path, tmp_path: Path
) -> None:
    heard = AgentLog(project / "heard.jsonl")
    sandbox = {"kind": "docker", "image": "i", "engine": [str(stub(tmp_path))]}
    agents = {"scripted": boxed_agent(*heard.flags, sandbox="box")}
    far = {"DOCKER_HOST": "ssh://me@build.example"}
    gateway = await dragoman("acp", "scripted", agents=agents, sandboxes={"box": sandbox}, env=far)
    await gateway.initialize(clientCapabilities=EVERYTHING)
    session = await gateway.new_session(project)
    assert "fs" not in heard.params("initialize")[-1]["clientCapabilities"]
    turn = await gateway.prompt(session, f"fsread {project}/src/a.txt")
    assert turn.report("fsread")["error"]["code"] == -32601


def stub(tmp_path: Path) -> Path:
    docker = tmp_path / "docker"
    docker.write_text(DOCKER)
    docker.chmod(0o755)
    return docker


async def test_a_container_that_another_gateway_made_meanwhile_is_used(
    dragoman: Start, project: Path, tmp_path: Path
) -> None:
    engine = [str(stub(tmp_path))]
    sandbox = {"kind": "docker", "image": "i", "engine": engine, "options": ["--another-was-faster"]}
    agents = {"scripted": boxed_agent(sandbox="box")}
    gateway = await dragoman("acp", "scripted", agents=agents, sandboxes={"box": sandbox})
    await gateway.initialize()
    session = await gateway.new_session(project)
    assert (await gateway.prompt(session, "say here")).texts == ["here"]


async def test_agents_with_different_logins_do_not_share_a_container(
    dragoman: Start, project: Path, tmp_path: Path
) -> None:
    house = tmp_path / "house"
    for folder, file in ((".codex", "auth.json"), (".claude", ".credentials.json")):
        (house / folder).mkdir(parents=True)
        (house / folder / file).write_text("a login")
    sandbox = {"kind": "docker", "image": "i", "engine": [str(stub(tmp_path))]}
    agents = {name: boxed_agent(sandbox="box") for name in ("codex", "claude-acp", "mine", "own")}
    host = {"HOME": str(house)}
    gateway = await dragoman("acp", agents=agents, sandboxes={"box": sandbox}, default_agent="mine", env=host)
    await gateway.initialize()
    for name in agents:
        await gateway.new_session(project, _meta={"dragoman": {"agent": name}})
    log = [json.loads(line) for line in (tmp_path / "docker.log").read_text().splitlines()]
    used = {name for words in log for name in words if words[0] == "exec" and name.startswith("dragoman-")}
    assert len(used) == 4  # codex, claude, one for those without a login, and the empty one of the question
