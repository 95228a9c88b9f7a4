from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest
import uvloop

from dragoman.agents.custody import Custody
from dragoman.services import terminals
from dragoman.wire.errors import CANCELLED, INVALID_PARAMS, NOT_FOUND
from support.waiting import runs, until, until_gone


@pytest.fixture(params=["asyncio", "uvloop"])
def event_loop_policy(request: pytest.FixtureRequest) -> asyncio.AbstractEventLoopPolicy:
    policies: dict[str, type[asyncio.AbstractEventLoopPolicy]]
    policies = {"asyncio": asyncio.DefaultEventLoopPolicy, "uvloop": uvloop.EventLoopPolicy}
    return policies[request.param]()


async def create(agent: Any, command: str, *args: str, **options: object) -> str:
    if args:
        options["args"] = list(args)
    result = await agent.call("terminal/create", sessionId="s", command=command, **options)
    id: str = result["terminalId"]
    return id


async def run(agent: Any, command: str, *args: str, **options: object) -> dict[str, Any]:
    """The output of a command that ends by itself."""
    id = await create(agent, command, *args, **options)
    status = await agent.call("terminal/wait_for_exit", sessionId="s", terminalId=id)
    output: dict[str, Any] = await agent.call("terminal/output", sessionId="s", terminalId=id)
    assert output["exitStatus"] == status
    assert await agent.call("terminal/release", sessionId="s", terminalId=id) == {}
    return output


async def output_of(agent: Any, id: str, awaited: str) -> str:
    """The output so far, once `awaited` is in it."""
    seen = ""
    while awaited not in seen:
        seen = (await agent.call("terminal/output", terminalId=id))["output"]
    return seen


async def test_a_command_runs_with_its_arguments_in_the_sessions_folder(agent: Any, workspace: Path) -> None:
    code = "import os, sys; print(sys.argv[1:], os.getcwd(), os.environ['PWD'])"
    output = await run(agent, sys.executable, "-c", code, "a b", "$HOME;ls")
    assert output == {
        "output": f"['a b', '$HOME;ls'] {workspace} {workspace}\n",
        "truncated": False,
        "exitStatus": {"exitCode": 0, "signal": None},
    }


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("echo one; echo two | tr t T", "one\nTwo\n"),
        ("X=1 sh -c 'echo $X'", "1\n"),
        ("exit 3", ""),
        ("true", ""),
    ],
)
async def test_a_shell_line_without_arguments_goes_to_the_shell(
    agent: Any, command: str, expected: str
) -> None:
    assert (await run(agent, command))["output"] == expected
    assert (await run(agent, command, args=[]))["output"] == expected


async def test_stdout_and_stderr_come_in_the_order_written(agent: Any) -> None:
    output = await run(agent, "for i in 1 2 3; do echo out $i; echo err $i >&2; done; exit 7")
    assert output["output"] == "out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\n"
    assert output["exitStatus"] == {"exitCode": 7, "signal": None}


async def test_all_output_is_there_when_the_exit_is_told(agent: Any) -> None:
    for _ in range(20):
        output = await run(agent, sys.executable, "-S", "-c", "print('x' * 60_000, end='')")
        assert len(output["output"]) == 60_000


async def test_stdin_is_empty(agent: Any) -> None:
    assert (await run(agent, "cat; echo done"))["output"] == "done\n"


async def test_the_environment_is_the_gateways_cleaned_with_the_given_on_top(
    open_agent: Any, workspace: Path
) -> None:
    environment = {"PATH": os.environ["PATH"], "MINE": "1", "OTHER": "1", "CLAUDECODE": "1"}
    agent = open_agent(workspace, environment=environment)
    given = [{"name": "OTHER", "value": "a=b"}, {"name": "NEW", "value": ""}]
    lines = (await run(agent, "env", env=given))["output"].splitlines()
    assert {"MINE=1", "OTHER=a=b", "NEW=", "NO_UPDATE_NOTIFIER=1"} <= set(lines)
    assert not any(line.startswith("CLAUDECODE") for line in lines)


async def test_a_folder_inside_the_roots_may_be_chosen_and_no_other(
    agent: Any, workspace: Path, tmp_path: Path
) -> None:
    (workspace / "sub").mkdir()
    (workspace / "out").symlink_to(tmp_path)
    assert (await run(agent, "pwd", cwd=str(workspace / "sub")))["output"] == f"{workspace}/sub\n"
    for cwd in (str(tmp_path), str(workspace / "out"), f"{workspace}/..", "sub", ""):
        error = await agent.refused("terminal/create", command="pwd", cwd=cwd)
        assert (error["code"], error["data"]["reason"]) == (INVALID_PARAMS, "path")
    error = await agent.refused("terminal/create", command="pwd", cwd=f"{workspace}/gone")
    assert error["data"]["reason"] == "cwd"


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"command": ""},
        {"command": "no-such-program"},
        {"command": "ls", "args": ["a\0b"]},
        {"command": "ls", "env": [{"name": "A=B", "value": ""}]},
        {"command": "ls", "outputByteLimit": -1},
    ],
)
async def test_a_command_that_cannot_be_is_refused(agent: Any, params: dict[str, object]) -> None:
    assert (await agent.refused("terminal/create", **params))["code"] == INVALID_PARAMS


async def test_a_command_sees_what_was_written_before_it(agent: Any, workspace: Path) -> None:
    written = agent.ask("fs/write_text_file", path=str(workspace / "f"), content="x" * 1_000_000)
    created = agent.ask("terminal/create", command="wc", args=["-c", "f"])
    await agent.answer(written)
    id = (await agent.answer(created))["result"]["terminalId"]
    assert "1000000 f" in await output_of(agent, id, "\n")


async def test_output_is_cut_at_its_beginning(agent: Any) -> None:
    output = await run(agent, "printf", "aäöü", outputByteLimit=4)
    assert (output["output"], output["truncated"]) == ("öü", True)


async def test_no_more_is_kept_than_we_allow(agent: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminals, "MAX_OUTPUT_BYTES", 1000)
    for limit in (None, 10**9):
        output = await run(agent, "yes | head -c 1000000", outputByteLimit=limit)
        assert (output["output"], output["truncated"]) == ("y\n" * 500, True)


async def test_output_can_be_read_while_the_command_runs(agent: Any) -> None:
    id = await create(agent, "echo begun; exec tail -f /dev/null")
    assert await output_of(agent, id, "begun") == "begun\n"
    assert "exitStatus" not in await agent.call("terminal/output", terminalId=id)


async def test_a_killed_terminal_keeps_its_id_and_output(agent: Any) -> None:
    id = await create(agent, "echo begun; exec tail -f /dev/null")
    await output_of(agent, id, "begun")
    waiting = agent.ask("terminal/wait_for_exit", terminalId=id)
    assert await agent.call("terminal/kill", terminalId=id) == {}
    status = {"exitCode": None, "signal": "SIGTERM"}
    assert (await agent.answer(waiting))["result"] == status
    output = await agent.call("terminal/output", terminalId=id)
    assert output == {"output": "begun\n", "truncated": False, "exitStatus": status}
    assert await agent.call("terminal/kill", terminalId=id) == {}


async def test_a_released_terminal_is_ended_and_forgotten(agent: Any) -> None:
    id = await create(agent, "echo $$; exec tail -f /dev/null")
    pid = int(await output_of(agent, id, "\n"))
    waiting = agent.ask("terminal/wait_for_exit", terminalId=id)
    assert await agent.call("terminal/release", terminalId=id) == {}
    assert not runs(pid)
    assert (await agent.answer(waiting))["result"]["signal"] == "SIGTERM"
    for verb in ("output", "wait_for_exit", "kill", "release"):
        error = await agent.refused(f"terminal/{verb}", terminalId=id)
        assert (error["code"], error["data"]) == (NOT_FOUND, {"terminalId": id})


async def test_what_a_command_left_behind_ends_with_its_terminal(agent: Any) -> None:
    id = await create(agent, "setsid tail -f /dev/null & echo $!; exit 0")
    pid = int(await output_of(agent, id, "\n"))
    assert (await agent.call("terminal/wait_for_exit", terminalId=id))["exitCode"] == 0
    assert runs(pid)  # it may be a server that the agent wants
    await agent.call("terminal/release", terminalId=id)
    assert not runs(pid)


async def test_a_wait_can_be_cancelled_and_the_command_goes_on(agent: Any) -> None:
    id = await create(agent, "exec tail -f /dev/null")
    waiting = agent.ask("terminal/wait_for_exit", terminalId=id)
    agent.cancel(waiting)
    assert (await agent.answer(waiting))["error"]["code"] == CANCELLED
    assert "exitStatus" not in await agent.call("terminal/output", terminalId=id)


async def test_closing_the_session_ends_its_commands(agent: Any) -> None:
    ids = [await create(agent, "echo $$; exec tail -f /dev/null") for _ in range(3)]
    pids = [int(await output_of(agent, id, "\n")) for id in ids]
    waiting = agent.ask("terminal/wait_for_exit", terminalId=ids[0])
    await agent.services.close()
    await until_gone(pids)
    assert (await agent.answer(waiting))["result"]["signal"] == "SIGTERM"
    error = await agent.refused("terminal/create", command="true")
    assert error["data"]["reason"] == "session_closed"


async def test_the_end_of_custody_ends_commands_too(agent: Any, custody: Custody) -> None:
    id = await create(agent, "echo $$; exec tail -f /dev/null")
    pid = int(await output_of(agent, id, "\n"))
    await custody.close()
    await until_gone([pid])


async def test_terminals_of_another_session_are_unknown(agent: Any, open_agent: Any, workspace: Path) -> None:
    id = await create(agent, "true")
    assert (await open_agent(workspace).refused("terminal/output", terminalId=id))["code"] == NOT_FOUND


async def test_too_many_running_are_refused_but_exited_ones_make_room(
    agent: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminals, "MAX_TERMINALS", 2)
    first = await create(agent, "exec tail -f /dev/null")
    for _ in range(3):
        id = await create(agent, "true")
        await agent.call("terminal/wait_for_exit", terminalId=id)
    last = await create(agent, "exec tail -f /dev/null")
    error = await agent.refused("terminal/create", command="true")
    assert error["data"]["reason"] == "too_many_terminals"
    await agent.call("terminal/release", terminalId=first)
    await create(agent, "true")
    await agent.call("terminal/kill", terminalId=last)


async def test_a_flood_does_not_keep_others_waiting(agent: Any) -> None:
    flood = await create(agent, "yes")
    assert (await run(agent, "echo hello"))["output"] == "hello\n"
    output = await agent.call("terminal/output", terminalId=flood)
    assert output["output"].endswith("y\n") or output["output"].endswith("y")
    await agent.call("terminal/kill", terminalId=flood)


async def test_no_descriptor_is_left_open(agent: Any) -> None:
    await run(agent, "true")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        await run(agent, "echo x & sleep 0")
        await agent.refused("terminal/create", command="no-such-program")
    await until(lambda: len(os.listdir("/proc/self/fd")) <= before)
