"""Which box a session gets, and which folders share one."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from support.agents.builtin_process import calls
from support.gateway_process import SCRIPTED_AGENT, GatewayProcess, Start, clean_environment
from support.rpc_peer import RpcFailure
from support.sandboxes.sandbox_kinds import INSIDE, Kind, boxed_agent

BOX = {"kind": "bubblewrap", "workspace": INSIDE, "read_only": [str(SCRIPTED_AGENT.parent)]}


async def where(gateway: GatewayProcess, folder: Path) -> str:
    """The folder that the agent of a new session finds itself in."""
    session = await gateway.new_session(folder)
    return str((await gateway.prompt(session, "sh pwd")).report("sh")["out"])


async def test_the_agents_own(dragoman: Start, bubblewrap: Kind, project: Path) -> None:
    gateway = await dragoman("acp", "scripted", **bubblewrap.config())
    await gateway.initialize()
    assert await where(gateway, project / "src") == f"{INSIDE}/src"


async def test_a_workspace_rule_comes_before_the_agents_own(
    dragoman: Start, bubblewrap: Kind, tmp_path: Path
) -> None:
    secret, open_ = tmp_path / "secret", tmp_path / "open"
    secret.mkdir()
    open_.mkdir()
    rules = [{"path": str(secret), "sandbox": "box"}]
    gateway = await dragoman(
        "acp", "scripted", agents={"scripted": boxed_agent()}, sandboxes={"box": BOX}, workspaces=rules
    )
    await gateway.initialize()
    assert await where(gateway, secret) == INSIDE
    assert await where(gateway, open_) != INSIDE


async def test_no_other_name_of_a_folder_leads_past_its_rule(
    dragoman: Start, bubblewrap: Kind, tmp_path: Path
) -> None:
    secret, open_ = tmp_path / "real" / "secret", tmp_path / "open"
    secret.mkdir(parents=True)
    open_.mkdir()
    (open_ / "link").symlink_to(secret)
    (tmp_path / "home").symlink_to(tmp_path / "real")
    rules = [
        {"path": str(open_), "sandbox": "local"},
        {"path": str(tmp_path / "home" / "secret"), "sandbox": "box"},
    ]
    gateway = await dragoman(
        "acp", "scripted", agents={"scripted": boxed_agent()}, sandboxes={"box": BOX}, workspaces=rules
    )
    await gateway.initialize()
    odd = open_ / ".." / "real" / "secret"
    for folder in (open_ / "link", secret, tmp_path / "home" / "secret", odd):
        assert await where(gateway, folder) == INSIDE, folder
    assert await where(gateway, open_) != INSIDE


async def test_the_command_line_comes_before_all(dragoman: Start, bubblewrap: Kind, project: Path) -> None:
    agents = {"scripted": boxed_agent(sandbox="local")}
    gateway = await dragoman("acp", "scripted", "--sandbox", "box", agents=agents, sandboxes={"box": BOX})
    await gateway.initialize()
    assert await where(gateway, project) == INSIDE


async def test_a_session_may_choose_among_the_boxes_and_keeps_its_own(
    dragoman: Start, bubblewrap: Kind, project: Path
) -> None:
    agents = {"scripted": boxed_agent()}
    gateway = await dragoman("acp", "scripted", agents=agents, sandboxes={"box": BOX})
    await gateway.initialize()
    assert await where(gateway, project) != INSIDE
    session = await gateway.new_session(project, _meta={"dragoman": {"sandbox": "box"}})
    assert (await gateway.prompt(session, "sh pwd")).report("sh")["out"] == INSIDE
    await gateway.kill()
    again = await dragoman("acp", "scripted", agents=agents, sandboxes={"box": BOX})
    await again.initialize()
    await again.request("session/load", {"sessionId": session, "cwd": str(project), "mcpServers": []})
    assert (await again.prompt(session, "sh pwd")).report("sh")["out"] == INSIDE
    with pytest.raises(RpcFailure, match="There is no sandbox jar"):
        await again.new_session(project, _meta={"dragoman": {"sandbox": "jar"}})


async def test_a_session_that_the_command_line_put_into_a_box_stays_there(
    dragoman: Start, bubblewrap: Kind, project: Path
) -> None:
    agents = {"scripted": boxed_agent()}
    config = {"agents": agents, "sandboxes": {"box": BOX}}
    gateway = await dragoman("acp", "scripted", "--sandbox", "box", **config)
    await gateway.initialize()
    session = await gateway.new_session(project)
    assert (await gateway.prompt(session, "sh pwd")).report("sh")["out"] == INSIDE
    await gateway.kill()
    again = await dragoman("acp", "scripted", **config)
    await again.initialize()
    await again.request("session/load", {"sessionId": session, "cwd": str(project), "mcpServers": []})
    assert (await again.prompt(session, "sh pwd")).report("sh")["out"] == INSIDE


async def test_it_stays_there_also_where_the_settings_name_no_box(
    dragoman: Start, bubblewrap: Kind, project: Path
) -> None:
    agents = {"builtin": {"kind": "builtin"}}
    env = {"OPENAI_API_KEY": ""}
    outside = str(Path("/proc/self/ns/mnt").readlink())
    gateway = await dragoman("acp", "builtin", "--sandbox", "bubblewrap", agents=agents, env=env)
    await gateway.initialize()
    session = await gateway.new_session(project)
    await gateway.prompt(session, "/help")
    await gateway.kill()
    again = await dragoman("acp", "builtin", agents=agents, env=env)
    again.on("session/request_permission", {"outcome": {"outcome": "selected", "optionId": "allow_once"}})
    await again.initialize()
    await again.request("session/load", {"sessionId": session, "cwd": str(project), "mcpServers": []})
    await again.prompt(session, "/help")  # a new agent is told the conversation with the first prompt
    ran = calls(await again.prompt(session, "/run readlink /proc/self/ns/mnt"))[0]
    assert "mnt:[" in str(ran["content"])
    assert outside not in str(ran["content"])


async def test_a_session_cannot_choose_to_be_in_no_box_where_one_is_prescribed(
    dragoman: Start, bubblewrap: Kind, project: Path
) -> None:
    gateway = await dragoman("acp", "scripted", **bubblewrap.config())
    await gateway.initialize()
    with pytest.raises(RpcFailure, match="prescribe the sandbox"):
        await gateway.new_session(project, _meta={"dragoman": {"sandbox": "local"}})


async def test_a_box_can_be_left_out_for_tests(dragoman: Start, bubblewrap: Kind, project: Path) -> None:
    gateway = await dragoman("acp", "scripted", env={"DRAGOMAN_ACP_DIRECT_SPAWN": "1"}, **bubblewrap.config())
    await gateway.initialize()
    session = await gateway.new_session(project)
    assert (await gateway.prompt(session, "env HOME")).report("env")
    assert (await gateway.prompt(session, f"sh test -d {INSIDE}")).report("sh")["code"] != 0


async def test_bubblewrap_needs_no_settings_and_keeps_the_paths(
    dragoman: Start, bubblewrap: Kind, project: Path, tmp_path: Path
) -> None:
    agents = {"builtin": {"kind": "builtin", "sandbox": "bubblewrap"}}
    gateway = await dragoman(
        "acp", "builtin", agents=agents, env={"HOME": str(tmp_path), "OPENAI_API_KEY": ""}
    )
    gateway.on("session/request_permission", {"outcome": {"outcome": "selected", "optionId": "allow_once"}})
    await gateway.initialize()
    session = await gateway.new_session(project)
    edited = calls(await gateway.prompt(session, "/edit src/a.txt hello goodbye"))[0]
    assert (project / "src" / "a.txt").read_text() == "goodbye\n"
    assert edited["content"][0]["path"] == str(project / "src" / "a.txt")
    (tmp_path / "secret.txt").write_text("a secret")
    ran = calls(await gateway.prompt(session, f"/run pwd; cat {tmp_path}/secret.txt"))[0]
    assert str(project) in str(ran["content"])
    assert "a secret" not in str(ran["content"])


async def test_a_symlinked_workspace_keeps_the_clients_name(
    dragoman: Start, bubblewrap: Kind, project: Path, tmp_path: Path
) -> None:
    link = tmp_path / "link"
    link.symlink_to(project)
    gateway = await dragoman("acp", "scripted", **bubblewrap.config())
    await gateway.initialize()
    session = await gateway.new_session(link)
    update = f'{{"sessionUpdate": "tool_call", "toolCallId": "1", "locations": [{{"path": "{INSIDE}/a"}}]}}'
    turn = await gateway.prompt(session, f"update {update}\nsh cat src/a.txt")
    assert turn.report("sh")["out"] == "hello"
    seen = next(each for each in turn.updates if each.get("sessionUpdate") == "tool_call")
    assert seen["locations"] == [{"path": f"{link}/a"}]


@pytest.mark.rule("G-152")
async def test_different_roots_never_share_a_process(
    dragoman: Start, bubblewrap: Kind, tmp_path: Path
) -> None:
    for name in ("one", "two"):
        (tmp_path / name / ".git").mkdir(parents=True)
    gateway = await dragoman("acp", "scripted", **bubblewrap.config(share="all"))
    await gateway.initialize()
    for name in ("one", "two"):
        session = await gateway.new_session(tmp_path / name)
        await gateway.prompt(session, f"sh echo {name} > {INSIDE}/name")
    assert [(tmp_path / name / "name").read_text() for name in ("one", "two")] == ["one\n", "two\n"]


async def test_what_an_agent_can_do_is_asked_in_an_empty_box_and_remembered(
    dragoman: Start, bubblewrap: Kind, project: Path
) -> None:
    first = await dragoman("acp", "scripted", **bubblewrap.config("--version", "7.7"))
    asked = await first.initialize()
    assert "loadSession" in asked["agentCapabilities"]
    await first.stop()
    second = await dragoman("acp", "scripted", **bubblewrap.config("--version", "7.7"))
    assert await second.initialize() == asked
    assert "agent started" not in second.stderr


async def test_agents_are_checked_in_their_box_and_sessions_remember_theirs(
    dragoman: Start, bubblewrap: Kind, project: Path
) -> None:
    gateway = await dragoman("acp", "scripted", **bubblewrap.config())
    await gateway.initialize()
    session = await gateway.new_session(project)
    await gateway.prompt(session, "hello")
    environment = {**clean_environment(), "DRAGOMAN_HOME": str(gateway.home)}
    for words, expected in (
        (["agents", "check", "scripted"], "scripted: ok"),
        (["sessions", "show", session], "box"),
    ):
        done = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "dragoman", *words),
            stdout=asyncio.subprocess.PIPE,
            env=environment,
            cwd=project,
        )
        output, _ = await done.communicate()
        assert done.returncode == 0
        assert expected in output.decode()
