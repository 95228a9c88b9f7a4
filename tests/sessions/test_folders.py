"""Agents that look for their sessions in the folder of their own process, as Gemini CLI does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.agents.agent_log import AgentLog
from support.gateway_process import GatewayProcess, Start, Table, end_process
from support.session_client import LOAD, RESUME, load, notices, resumable_agent, resume
from support.waiting import until


def bound(heard: AgentLog, caps: str = LOAD, **settings: Any) -> Table:
    """One scripted agent that knows only sessions of its process's folder."""
    return {"scripted": resumable_agent("--folder-bound", *heard.flags, caps=caps, **settings)}


async def begun(dragoman: Start, workspace: Path, agents: Table, **sections: Any) -> str:
    """A session with one turn whose gateway has ended."""
    gateway = await dragoman(agents=agents, **sections)
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    await gateway.prompt(session, "say before")
    gateway.leave()
    await gateway.wait_exit()
    return session


async def again(dragoman: Start, agents: Table, cwd: Path | None = None, **sections: Any) -> GatewayProcess:
    """A gateway that runs in `cwd`, or in its home, and has started its agent ahead."""
    gateway = await dragoman(agents=agents, cwd=cwd, **sections)
    await gateway.initialize()
    return gateway


def agents_of(gateway: GatewayProcess) -> list[int]:
    return [pid for pid, line in gateway.processes().items() if "scripted_agent" in line]


async def folder_of(gateway: GatewayProcess, session: str) -> str:
    """Where the process runs that has the session."""
    turn = await gateway.prompt(session, "sh pwd -P")
    return str(turn.report("sh")["out"])


@pytest.mark.parametrize(("caps", "rung"), [(LOAD, "load"), (RESUME, "resume")])
async def test_an_agent_that_was_started_ahead_elsewhere_is_replaced_before_it_loads(
    dragoman: Start, workspace: Path, heard: AgentLog, caps: str, rung: str
) -> None:
    agents = bound(heard, caps)
    session = await begun(dragoman, workspace, agents)
    gateway = await again(dragoman, agents)
    loaded = await load(gateway, session, workspace)
    assert loaded.facts["revived"] == rung
    assert await folder_of(gateway, session) == str(workspace)
    assert notices(gateway, session) == []
    await until(lambda: len(agents_of(gateway)) == 1)  # the one that was started ahead has ended


async def test_an_agent_that_was_started_ahead_in_the_sessions_folder_is_used(
    dragoman: Start, workspace: Path, heard: AgentLog, tmp_path: Path
) -> None:
    agents = bound(heard)
    (tmp_path / "link").symlink_to(workspace)
    session = await begun(dragoman, workspace, agents)
    gateway = await again(dragoman, agents, cwd=workspace)
    loaded = await load(gateway, session, tmp_path / "link")
    assert loaded.facts["revived"] == "load"
    assert len(heard.params("initialize")) == 2  # one for each gateway


async def test_a_new_session_takes_the_agent_that_was_started_ahead_and_comes_back_in_its_folder(
    dragoman: Start, workspace: Path, heard: AgentLog
) -> None:
    gateway = await again(dragoman, bound(heard))
    session = await gateway.new_session(workspace)
    assert len(heard.params("initialize")) == 1
    await gateway.prompt(session, "say before")
    (pid,) = agents_of(gateway)
    end_process(pid)
    await gateway.logged("ended by SIGKILL")
    assert await folder_of(gateway, session) == str(workspace)
    assert (await gateway.logged(r'msg="session revived".*rung=(\w+)'))[1] == "load"


async def test_the_second_session_of_a_client_runs_in_its_own_folder(
    dragoman: Start, workspace: Path, tmp_path: Path, heard: AgentLog
) -> None:
    gateway = await again(dragoman, bound(heard))
    await gateway.new_session(workspace)
    session = await gateway.new_session(tmp_path)
    assert await folder_of(gateway, session) == str(tmp_path)
    turn = await gateway.prompt(session, "env PWD")
    assert turn.report("env") == str(tmp_path)


def with_own_session(heard: AgentLog, workspace: Path) -> Table:
    """An agent that lists a session which no gateway knows."""
    caps = json.dumps({"loadSession": True, "sessionCapabilities": {"list": {}}})
    listed = json.dumps([{"sessionId": "its-own", "cwd": str(workspace)}])
    return {"scripted": resumable_agent("--folder-bound", "--list", listed, *heard.flags, caps=caps)}


async def test_a_session_that_only_the_agent_knows_is_loaded_in_its_folder(
    dragoman: Start, workspace: Path, heard: AgentLog
) -> None:
    gateway = await again(dragoman, with_own_session(heard, workspace))
    (found,) = (await gateway.request("session/list", {"cwd": str(workspace)}))["sessions"]
    loaded = await load(gateway, found["sessionId"], workspace)
    assert loaded.texts == ["replay 0"]
    assert await folder_of(gateway, found["sessionId"]) == str(workspace)


@pytest.mark.parametrize("method", ["load", "resume"])
async def test_without_a_journal_the_agent_is_asked_in_the_sessions_folder(
    dragoman: Start, workspace: Path, heard: AgentLog, method: str
) -> None:
    gateway = await again(dragoman, with_own_session(heard, workspace), sessions={"journal": False})
    (found,) = (await gateway.request("session/list", {"cwd": str(workspace)}))["sessions"]
    session = found["sessionId"]
    await gateway.request(
        f"session/{method}", {"sessionId": session, "cwd": str(workspace), "mcpServers": []}
    )
    assert await folder_of(gateway, session) == str(workspace)


@pytest.mark.parametrize("share", ["workspace", "all"])
async def test_sessions_that_share_a_process_come_back_in_a_process_of_their_folder(
    dragoman: Start, workspace: Path, tmp_path: Path, heard: AgentLog, share: str
) -> None:
    agents = bound(heard, share=share)
    (workspace / ".git").mkdir()
    below = workspace / "below"
    below.mkdir()
    first = await begun(dragoman, workspace, agents)
    second = await begun(dragoman, below, agents)
    gateway = await again(dragoman, agents)
    for session, folder in ((first, workspace), (second, below)):
        assert (await load(gateway, session, folder)).facts["revived"] == "load"
        assert await folder_of(gateway, session) == str(folder)


async def test_an_agents_reason_for_a_refusal_is_in_the_log(
    dragoman: Start, workspace: Path, tmp_path: Path, heard: AgentLog
) -> None:
    agents = bound(heard)
    session = await begun(dragoman, workspace, agents)
    refused = {"code": -32603, "message": "Internal error", "data": {"details": "No previous sessions found"}}
    answer = ("--answer", "session/load", f'"error":{json.dumps(refused)}')
    gateway = await again(dragoman, {"scripted": resumable_agent(*answer, caps=LOAD)})
    assert (await resume(gateway, session, workspace))["_meta"]["dragoman"]["revived"] == "seed"
    line = (await gateway.logged(r".*session/load: Internal error.*"))[0]
    assert "No previous sessions found" in line
    assert f"session={session}" in line


async def test_a_refused_prompt_shows_its_reason_only_where_the_log_may_have_words(
    dragoman: Start, workspace: Path
) -> None:
    for prompts in (False, True):
        gateway = await dragoman(log={"prompts": prompts})
        await gateway.initialize()
        session = await gateway.new_session(workspace)
        await gateway.prompt(session, "error 4711 secret words")
        line = (await gateway.logged(r'.*msg="turn ended".*'))[0]
        assert "code=4711" in line
        assert ("secret words" in line) is prompts


# Folders beside the session's own


ABLE = json.dumps({"loadSession": True, "sessionCapabilities": {"additionalDirectories": {}}})


@pytest.mark.rule("G-035")
@pytest.mark.parametrize("caps", [ABLE, LOAD], ids=["able", "not able"])
async def test_more_folders_are_refused_for_an_agent_that_does_not_take_them(
    dragoman: Start, workspace: Path, heard: AgentLog, caps: str
) -> None:
    agents = {"scripted": resumable_agent(*heard.flags, caps=caps)}
    session = await begun(dragoman, workspace, agents)
    gateway = await again(dragoman, agents)
    params = {"cwd": str(workspace), "mcpServers": [], "additionalDirectories": [str(workspace.parent)]}
    known = {**params, "sessionId": session}
    ways = [
        ("session/new", params),
        ("session/load", known),
        ("session/resume", known),
        ("session/fork", known),
    ]
    for method, asked in ways:
        response = await gateway.request_raw(method, asked)
        if caps == ABLE:
            assert "result" in response, response
        elif method == "session/fork":  # it was not loaded
            await load(gateway, session, workspace, additionalDirectories=[])
            response = await gateway.request_raw(method, asked)
        if caps != ABLE:
            assert response["error"]["code"] == -32602
            assert response["error"]["data"]["capability"] == "sessionCapabilities.additionalDirectories"
    fresh = {**params, "additionalDirectories": []}
    assert "sessionId" in await gateway.request("session/new", fresh)
