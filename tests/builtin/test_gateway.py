"""The built-in agent behind the gateway, as a newcomer meets it."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from support.agents.builtin_process import bare_environment, calls, said, updates
from support.agents.fake_llm import FakeLlm, call, text
from support.command_line import CommandLine
from support.gateway_process import Start


async def test_a_newcomer_reads_runs_edits_and_plans(dragoman: Start, workspace: Path) -> None:
    (workspace / "notes.txt").write_text("hello world\n")
    gateway = await dragoman(
        "acp", agents={"builtin": {"kind": "builtin"}}, env=dict.fromkeys(("OPENAI_API_KEY",), "")
    )
    gateway.on("session/request_permission", {"outcome": {"outcome": "selected", "optionId": "allow_once"}})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    assert calls(await gateway.prompt(session, "/read notes.txt"))[0]["status"] == "completed"
    assert calls(await gateway.prompt(session, "/run wc -l notes.txt"))[0]["status"] == "completed"
    edited = calls(await gateway.prompt(session, "/edit notes.txt hello goodbye"))[0]
    assert edited["content"][0]["type"] == "diff"
    assert updates(await gateway.prompt(session, "/plan one; two"), "plan")


async def test_files_and_terminals_go_through_the_client(dragoman: Start, workspace: Path) -> None:
    gateway = await dragoman("acp", "builtin", agents={"builtin": {"kind": "builtin"}})
    gateway.on("session/request_permission", {"outcome": {"outcome": "selected", "optionId": "allow_once"}})
    gateway.on("fs/read_text_file", {"content": "unsaved\n"})
    gateway.on("terminal/create", {"terminalId": "t1"})
    gateway.on("terminal/wait_for_exit", {"exitCode": 0})
    gateway.on("terminal/output", {"output": "hi\n", "truncated": False, "exitStatus": {"exitCode": 0}})
    gateway.on("terminal/release", {})
    (workspace / "a.txt").write_text("saved\n")
    await gateway.initialize(
        clientCapabilities={"fs": {"readTextFile": True, "writeTextFile": True}, "terminal": True}
    )
    session = await gateway.new_session(workspace)
    assert "unsaved" in str(calls(await gateway.prompt(session, "/read a.txt"))[0]["content"])
    ran = calls(await gateway.prompt(session, "/run echo hi"))[0]
    assert ran["content"] == [{"type": "terminal", "terminalId": "t1"}]
    assert [m for m in gateway.received if m.get("method") == "terminal/release"]


async def test_a_session_comes_back_with_its_context_after_a_restart(
    dragoman: Start, llm: FakeLlm, workspace: Path, home: Path
) -> None:
    agents = {"builtin": {"kind": "builtin", "model": "openai:fake", "base_url": llm.url}}
    first = await dragoman("acp", agents=agents)
    await first.initialize()
    session = await first.new_session(workspace)
    llm.tell(text("Noted."), text("Blue."))
    await first.prompt(session, "my colour is blue")
    await first.stop()
    second = await dragoman("acp", agents=agents)
    await second.initialize()
    await second.request("session/load", {"sessionId": session, "cwd": str(workspace), "mcpServers": []})
    kinds = [update["sessionUpdate"] for update in second.of(session)]
    assert kinds.index("available_commands_update") == len(kinds) - 1
    assert said(await second.prompt(session, "what is my colour?")) == "Blue."
    assert "my colour is blue" in str(llm.requests[-1])
    await second.stop()
    done = await asyncio.to_thread(CommandLine(home, workspace).run, "usage", "--json")
    (used,) = json.loads(done.stdout)["groups"]
    assert (used["turns"], used.get("unknown", 0), used["totalTokens"]) == (2, 0, 220), "110 in each answer"


async def test_after_a_loss_of_memory_a_command_works_and_the_title_stays(
    dragoman: Start, home: Path, workspace: Path
) -> None:
    (workspace / "notes.txt").write_text("hello world\n")
    agents, env = {"builtin": {"kind": "builtin"}}, dict.fromkeys(("OPENAI_API_KEY",), "")
    first = await dragoman("acp", agents=agents, env=env)
    await first.initialize()
    session = await first.new_session(workspace)
    await first.prompt(session, "my colour is blue")
    await first.stop()
    for kept in home.rglob("builtin/sessions/*"):
        kept.unlink()
    second = await dragoman("acp", agents=agents, env=env)
    await second.initialize()
    known = {"sessionId": session, "cwd": str(workspace), "mcpServers": []}
    assert (await second.request("session/load", known))["_meta"]["dragoman"]["revived"] == "seed"
    assert calls(await second.prompt(session, "/read notes.txt"))[0]["status"] == "completed"
    await second.prompt(session, "what is my colour?")
    assert calls(await second.prompt(session, "/read notes.txt"))[0]["status"] == "completed"
    (listed,) = (await second.request("session/list", {}))["sessions"]
    assert listed["title"] == "my colour is blue"


async def test_a_script_gets_its_answer(home: Path, llm: FakeLlm, workspace: Path) -> None:
    llm.tell(call("list", {}), text("It is empty."))
    config = f'[agents.builtin]\nmodel = "openai:fake"\nbase_url = "{llm.url}"\n'
    (home / "config.toml").write_text(config)
    env = {**bare_environment(), "DRAGOMAN_HOME": str(home)}

    async def run(*words: str) -> str:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "dragoman", "exec", "-a", "builtin", *words),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            env=env,
            cwd=workspace,
        )
        output, _ = await asyncio.wait_for(process.communicate(), 90)
        assert process.returncode == 0
        return output.decode()

    assert "/search" in await run("/help")
    assert "It is empty." in await run("what is here?")
