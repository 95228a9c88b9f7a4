"""From inside a box there is no way out: every attempt fails, and the machine outside is as it was."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.gateway_process import GatewayProcess, Start
from support.sandboxes.sandbox_kinds import PYTHON, Kind
from support.waiting import runs

Try = Callable[[str], Coroutine[Any, Any, dict[str, Any]]]


@pytest.fixture(params=["bubblewrap", "podman"])
def box(request: pytest.FixtureRequest) -> Kind:
    found = request.getfixturevalue(request.param)
    assert isinstance(found, Kind)
    return found


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A home folder with something to steal."""
    folder = tmp_path / "house"
    (folder / ".ssh").mkdir(parents=True)
    (folder / ".ssh" / "id_ed25519").write_text("a private key")
    return folder


@pytest.fixture
async def attempt(dragoman: Start, box: Kind, project: Path, house: Path) -> AsyncIterator[Try]:
    """Run a shell line as the agent, in a box without a network."""
    config = box.config(sandbox={"network": False})
    gateway = await dragoman("acp", "scripted", env={"HOME": str(house)}, **config)
    await gateway.initialize()
    session = await gateway.new_session(project)

    async def run(line: str) -> dict[str, Any]:
        result = (await gateway.prompt(session, f"sh {line}")).report("sh")
        assert isinstance(result, dict)
        return result

    yield run


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    """Somebody else's process on this machine."""
    process = subprocess.Popen(["sleep", "1000"])
    yield process
    process.kill()
    process.wait()


async def test_the_home_folder_cannot_be_read(attempt: Try, house: Path) -> None:
    assert (await attempt(f"cat {house}/.ssh/id_ed25519"))["code"] != 0
    listed = await attempt(f"ls -A {house} 2>/dev/null")
    assert ".ssh" not in listed["out"]
    found = await attempt("cat ~/.ssh/id_ed25519")
    assert found["code"] != 0


async def test_what_is_not_shown_cannot_be_read(attempt: Try) -> None:
    for path in ("/etc/shadow", "/etc/ssh/ssh_host_ed25519_key", "/var/log", "/root/.bash_history"):
        assert (await attempt(f"cat {path}/* {path} 2>/dev/null"))["out"] == "", path


async def test_nothing_outside_of_the_workspace_can_be_written(attempt: Try, tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    name = f"dragoman-escape-{os.getpid()}"
    for target in (f"/usr/{name}", f"/usr/bin/{name}", f"{Path(PYTHON).parent}/{name}"):
        assert (await attempt(f"echo x > {target}"))["code"] != 0
        assert not Path(target).exists()
    # A private folder of that name may be written to; the machine's own is untouched.
    await attempt(f"mkdir -p {tmp_path}; echo x > {outside}; echo x > ../outside.txt; echo x > /tmp/{name}")
    assert not outside.exists()
    assert not Path(f"/tmp/{name}").exists()
    assert not (tmp_path / "my project" / "outside.txt").exists()


async def test_a_symlink_does_not_lead_out(attempt: Try, project: Path, house: Path, tmp_path: Path) -> None:
    (project / "out").symlink_to(house)
    assert (await attempt("cat out/.ssh/id_ed25519"))["code"] != 0
    await attempt(f"ln -s {tmp_path} up; echo x > up/planted.txt")
    assert not (tmp_path / "planted.txt").exists()


async def test_processes_outside_cannot_be_seen_or_signalled(
    attempt: Try, bystander: subprocess.Popen[bytes]
) -> None:
    assert (await attempt(f"kill -9 {bystander.pid}"))["code"] != 0
    with pytest.raises(AssertionError, match="agent_exited"):  # all that it can reach is itself
        await attempt("kill -9 -1")
    assert runs(bystander.pid)


async def test_processes_outside_are_not_listed(attempt: Try, bystander: subprocess.Popen[bytes]) -> None:
    listed = await attempt("cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
    assert "sleep 1000" not in listed["out"]
    assert "-m pytest" not in listed["out"]


async def test_the_network_is_not_there(attempt: Try) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        tried = await attempt(reach(server.getsockname()[1]))
    assert tried["code"] != 0
    assert "refused" in tried["err"] or "unreachable" in tried["err"], tried


async def test_the_network_is_there_unless_it_is_turned_off(
    dragoman: Start, bubblewrap: Kind, project: Path
) -> None:
    gateway = await dragoman("acp", "scripted", **bubblewrap.config())
    await gateway.initialize()
    session = await gateway.new_session(project)
    with socket.create_server(("127.0.0.1", 0)) as server:
        turn = await gateway.prompt(session, f"sh {reach(server.getsockname()[1])}")
    assert turn.report("sh")["code"] == 0, turn.report("sh")


async def test_read_only_mounts_cannot_be_written_even_through_the_gateway(
    dragoman: Start, box: Kind, project: Path, tmp_path: Path
) -> None:
    shown = tmp_path / "shown"
    shown.mkdir()
    (shown / "a.txt").write_text("a")
    read_only = [*box.sandbox["read_only"], f"{shown}:/shown"]
    caps = '{"sessionCapabilities": {"additionalDirectories": {}}}'
    config = box.config("--caps", caps, sandbox={"read_only": read_only}, serve_fs=True)
    gateway = await dragoman("acp", "scripted", **config)
    await gateway.initialize()
    session = await gateway.new_session(project, additionalDirectories=[str(shown)])
    turn = await gateway.prompt(
        session, "sh cat /shown/a.txt\nsh echo x > /shown/b.txt\nfswrite /shown/c.txt x"
    )
    read, written = turn.reports("sh")
    assert read["out"] == "a"
    assert written["code"] != 0
    assert "error" in turn.report("fswrite")
    assert [each.name for each in shown.iterdir()] == ["a.txt"]


async def test_a_read_only_folder_stays_so_when_the_one_above_it_is_renamed(
    dragoman: Start, bubblewrap: Kind, project: Path
) -> None:
    kept = project / "above" / "kept"
    kept.mkdir(parents=True)
    read_only = [*bubblewrap.sandbox["read_only"], f"{kept}:{bubblewrap.inside}/above/kept"]
    gateway = await dragoman("acp", "scripted", **bubblewrap.config(sandbox={"read_only": read_only}))
    await gateway.initialize()
    session = await gateway.new_session(project)
    turn = await gateway.prompt(
        session,
        f"sh cd {bubblewrap.inside} && mv above moved\nfswrite {bubblewrap.inside}/moved/kept/x.txt x",
    )
    assert turn.report("sh")["code"] == 0, turn.report("sh")
    assert "error" in turn.report("fswrite")
    assert list((project / "moved" / "kept").iterdir()) == []


async def test_memory_is_limited(dragoman: Start, bubblewrap: Kind, project: Path) -> None:
    gateway = await dragoman("acp", "scripted", **bubblewrap.config(sandbox={"memory": "300m"}))
    await gateway.initialize()
    session = await gateway.new_session(project)
    turn = await gateway.prompt(session, f"sh {PYTHON} -S -E -c 'bytearray(400 << 20)'")
    assert "MemoryError" in turn.report("sh")["err"]


def reach(port: int) -> str:
    script = f'import socket; socket.create_connection((\\"127.0.0.1\\", {port}), 3)'
    return f'{Path(sys.base_prefix, "bin", "python3")} -S -E -c "{script}"'


@pytest.fixture(params=["bubblewrap", "podman", "ssh", "command"])
def any_box(request: pytest.FixtureRequest) -> Kind:
    found = request.getfixturevalue(request.param)
    assert isinstance(found, Kind)
    return found


async def run_command(gateway: GatewayProcess, session: str, command: str, *args: str, **env: str) -> str:
    """The output of a command that the agent has the gateway run."""
    given = [{"name": name, "value": value} for name, value in env.items()]
    asked = {"sessionId": "{sid}", "command": command, "args": args, "env": given}
    created = (await gateway.prompt(session, f"request terminal/create {json.dumps(asked)}")).report(
        "request"
    )
    assert "result" in created, created
    handle = {"sessionId": "{sid}", "terminalId": created["result"]["terminalId"]}
    turn = await gateway.prompt(
        session,
        f"request terminal/wait_for_exit {json.dumps(handle)}\nrequest terminal/output {json.dumps(handle)}",
    )
    return str(turn.reports("request")[1]["result"]["output"])


async def test_a_command_cannot_have_files_shown_by_naming_them(
    dragoman: Start, box: Kind, project: Path, house: Path
) -> None:
    (house / "bin").mkdir()
    tool = house / "bin" / "tool"
    tool.write_text("#!/bin/sh\necho ran\n")
    tool.chmod(0o755)
    config = box.config(serve_terminal=True)
    gateway = await dragoman("acp", "scripted", env={"HOME": str(house)}, **config)
    await gateway.initialize()
    session = await gateway.new_session(project)
    assert "a private key" not in await run_command(gateway, session, "cat", f"{house}/.ssh/id_ed25519")
    assert "ran" not in await run_command(gateway, session, str(tool))
    found = await run_command(gateway, session, "tool", PATH=f"{house}/bin:/usr/bin:/bin", HOME="/usr")
    assert "ran" not in found


async def test_the_variables_of_a_command_count_only_inside(
    dragoman: Start, any_box: Kind, project: Path, tmp_path: Path
) -> None:
    """LD_DEBUG_OUTPUT makes the loader of any program write a file, as LD_PRELOAD would make it run one."""
    planted = tmp_path / "planted"
    planted.mkdir()
    for name in ("podman", "bwrap", "ssh", "sh"):
        (planted / name).write_text(f"#!/bin/sh\necho {name} > {tmp_path}/escaped\n")
        (planted / name).chmod(0o755)
    gateway = await dragoman("acp", "scripted", **any_box.config(serve_terminal=True))
    await gateway.initialize()
    session = await gateway.new_session(project)
    value = "one 'line'\n\nand $another"
    trace = {"LD_DEBUG": "libs", "LD_DEBUG_OUTPUT": f"{tmp_path}/trace"}
    said = await run_command(
        gateway, session, "/usr/bin/printenv", "MINE", PATH=f"{planted}:/usr/bin:/bin", MINE=value, **trace
    )
    assert said.strip().endswith(value)
    assert not (tmp_path / "escaped").exists()
    # Where the box is this very machine the command itself writes one, and nobody else does.
    traced = "".join(trace.read_text() for trace in tmp_path.glob("trace.*")).splitlines()
    started = {line.split()[-1] for line in traced if "initialize program:" in line}
    assert started <= {"/usr/bin/printenv"}


async def test_the_path_and_home_of_a_sandbox_are_for_inside(
    dragoman: Start, any_box: Kind, project: Path, tmp_path: Path
) -> None:
    planted = tmp_path / "planted"
    planted.mkdir()
    for name in ("podman", "bwrap", "ssh"):
        (planted / name).write_text(f"#!/bin/sh\necho {name} > {tmp_path}/escaped\n")
        (planted / name).chmod(0o755)
    path = f"{planted}:/usr/bin:/bin"
    config = any_box.config(sandbox={"env": {"PATH": path, "HOME": "/tmp", "LD_DEBUG_OUTPUT": "/x"}})
    gateway = await dragoman("acp", "scripted", **config)
    await gateway.initialize()
    session = await gateway.new_session(project)
    turn = await gateway.prompt(session, "env PATH\nenv HOME\nenv LD_DEBUG_OUTPUT")
    assert turn.reports("env") == [path, "/tmp", "/x"]
    assert not (tmp_path / "escaped").exists()
