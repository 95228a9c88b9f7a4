"""`dragoman acp --worktree`, as an editor sees it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.gateway_process import GatewayProcess, Start, agent

from .conftest import Checkout

OFFERS = {"fs": {"readTextFile": True, "writeTextFile": True}, "terminal": True}


async def editor(dragoman: Start, *words: str, **sections: Any) -> GatewayProcess:
    gateway = await dragoman("acp", "scripted", *words, **sections)
    await gateway.initialize(clientCapabilities=OFFERS)
    return gateway


async def opened(gateway: GatewayProcess, workspace: Path) -> tuple[str, Path]:
    """A new session, and the folder of its worktree."""
    made = await gateway.request("session/new", {"cwd": str(workspace), "mcpServers": []})
    return made["sessionId"], Path(made["_meta"]["dragoman"]["worktree"]["folder"])


async def test_files_and_terminals_are_served_from_the_worktree(
    dragoman: Start, repository: Checkout, workspace: Path
) -> None:
    gateway = await editor(dragoman, "--worktree")
    session, folder = await opened(gateway, workspace)
    turn = await gateway.prompt(session, f"fswrite {folder}/c new\nfsread {folder}/a\nterminal pwd")
    assert turn.report("fsread")["result"] == {"content": "1\n2\n3\n"}
    assert turn.report("terminal/output")["result"]["output"].strip() == str(folder)
    assert (folder / "c").read_text() == "new"
    assert repository.git("status", "--porcelain") == ""
    served = [seen for seen in gateway.received if seen.get("method", "").startswith(("fs/", "terminal/"))]
    assert served == [], "the editor knows nothing of the worktree"


async def test_paths_are_shown_as_they_are(dragoman: Start, repository: Checkout, workspace: Path) -> None:
    gateway = await editor(dragoman, "--worktree")
    session, folder = await opened(gateway, workspace)
    call = {"sessionUpdate": "tool_call", "toolCallId": "t", "title": "Edit", "kind": "edit"}
    shown = {**call, "locations": [{"path": f"{folder}/a"}]}
    await gateway.prompt(session, f"update {json.dumps(shown)}")
    (seen,) = [update for update in gateway.of(session) if update["sessionUpdate"] == "tool_call"]
    assert seen["locations"] == [{"path": f"{folder}/a"}]


async def test_another_process_loads_the_session_into_the_same_worktree(
    dragoman: Start, repository: Checkout, workspace: Path
) -> None:
    first = await editor(dragoman, "--worktree")
    session, folder = await opened(first, workspace)
    await first.prompt(session, f"fswrite {folder}/c new")
    first.leave()
    await first.wait_exit()
    second = await editor(dragoman)
    params = {"sessionId": session, "cwd": str(workspace), "mcpServers": []}
    await second.request("session/load", params)
    turn = await second.prompt(session, f"cwd\nfsread {folder}/c\nfswrite {folder}/d more")
    assert turn.report("cwd") == str(folder)
    assert turn.report("fsread")["result"] == {"content": "new"}
    assert (folder / "d").read_text() == "more"
    assert not (workspace / "d").exists()
    listed = await second.request("session/list", {"cwd": str(folder)})
    assert [each["sessionId"] for each in listed["sessions"]] == [session]


def answers(gateway: GatewayProcess, option: str) -> list[dict[str, Any]]:
    """Answer permission questions with an option; what was asked comes into the list."""
    asked: list[dict[str, Any]] = []

    def answer(params: dict[str, Any]) -> dict[str, Any]:
        asked.append(params)
        return {"outcome": {"outcome": "selected", "optionId": option}}

    gateway.on("session/request_permission", answer)
    return asked


async def test_setup_is_asked_about_in_the_first_turn_and_remembered_for_the_project(
    dragoman: Start, repository: Checkout, workspace: Path
) -> None:
    repository.commit("make", Makefile="prepared more:\n\ttouch $@\n")
    settings = {"setup": ["make prepared", "make more"]}
    gateway = await editor(dragoman, "--worktree", worktrees=settings, policy={"remember": "gateway"})
    asked = answers(gateway, "dragoman:project")
    session, folder = await opened(gateway, workspace)
    assert not (folder / "prepared").exists()
    turn = await gateway.prompt(session, "say x")
    assert turn.texts == ["x"]
    (question,) = asked
    assert question["toolCall"]["content"][0]["content"]["text"] == "make prepared\nmake more"
    assert question["toolCall"]["kind"] == "execute"
    assert (folder / "prepared").exists() and (folder / "more").exists()
    await gateway.prompt(session, "say y")
    other, folder = await opened(gateway, workspace)
    await gateway.prompt(other, "say z")
    assert len(asked) == 1, "the answer holds in the repository, whatever the worktree"
    assert (folder / "more").exists()


async def test_rules_and_remembered_answers_of_the_repository_hold_in_its_worktrees(
    dragoman: Start, repository: Checkout, workspace: Path
) -> None:
    narrow = '[[policy.narrow]]\nname = "no make"\ndecision = "deny"\ncommand = [["make"]]\n'
    (workspace / ".dragoman").mkdir()
    (workspace / ".dragoman" / "config.toml").write_text(narrow)
    (workspace / ".git" / "info" / "exclude").write_text(".dragoman\n")
    gateway = await editor(dragoman, policy={"remember": "gateway"})
    asked = answers(gateway, "dragoman:project")

    async def ask(session: str, line: str) -> Any:
        tool = {"toolCallId": line, "kind": "execute", "title": line, "rawInput": {"command": line}}
        turn = await gateway.prompt(session, "permission " + json.dumps({"toolCall": tool}))
        return turn.report("permission")["result"]["outcome"]["optionId"]

    wish = {"_meta": {"dragoman": {"worktree": True}}}
    one, two = [await gateway.new_session(workspace, **wish) for _ in range(2)]
    plain = await gateway.new_session(workspace)
    assert [await ask(session, "make all") for session in (one, plain)] == ["no", "no"]
    assert asked == [], "a rule of the repository's own file decides"
    assert [await ask(session, "npm ci") for session in (one, two, plain)] == ["yes"] * 3
    assert len(asked) == 1


async def test_a_refused_setup_is_not_run_and_the_turn_goes_on(
    dragoman: Start, repository: Checkout, workspace: Path
) -> None:
    gateway = await editor(dragoman, "--worktree", worktrees={"setup": ["touch prepared"]})
    asked = answers(gateway, "reject")
    session, folder = await opened(gateway, workspace)
    assert (await gateway.prompt(session, "say x")).texts[-1] == "x"
    await gateway.prompt(session, "say y")
    assert (len(asked), (folder / "prepared").exists()) == (1, False)


async def test_a_rule_decides_about_setup_and_settings_without_trust_name_none(
    dragoman: Start, repository: Checkout, workspace: Path
) -> None:
    rules = [{"decision": "deny", "command": [["make"]]}]
    settings = {"setup": ["make prepared"]}
    gateway = await editor(dragoman, "--worktree", worktrees=settings, policy={"rules": rules})
    asked = answers(gateway, "allow")
    session, _ = await opened(gateway, workspace)
    assert (await gateway.prompt(session, "say x")).stop_reason == "end_turn"
    assert "is denied by the rule" in json.dumps(gateway.of(session))
    assert asked == []
    repository.commit("settings", **{".gitignore": ".dragoman\n"})
    (workspace / ".dragoman").mkdir()
    (workspace / ".dragoman" / "config.toml").write_text('[worktrees]\nsetup = ["false"]\n')
    session, _ = await opened(gateway, workspace)
    await gateway.prompt(session, "say x")
    assert asked == [], "settings that are not trusted name no commands"


async def test_a_cancelled_question_about_setup_ends_the_turn_and_comes_again(
    dragoman: Start, repository: Checkout, workspace: Path
) -> None:
    gateway = await editor(dragoman, "--worktree", worktrees={"setup": ["touch prepared"]})
    session, folder = await opened(gateway, workspace)
    turn = gateway.start_prompt(session, "say x")
    question = await gateway.next_message("session/request_permission")
    gateway.cancel(session)
    gateway.reply(question, {"outcome": {"outcome": "cancelled"}})
    assert (await turn).stop_reason == "cancelled"
    asked = answers(gateway, "allow")
    assert (await gateway.prompt(session, "say y")).texts == ["y"]
    assert (len(asked), (folder / "prepared").exists()) == (1, True)


@pytest.mark.parametrize("able", [True, False])
async def test_a_fork_gets_a_worktree_of_its_own(
    dragoman: Start, repository: Checkout, workspace: Path, able: bool
) -> None:
    caps = '{"sessionCapabilities": {"fork": {}}}' if able else "{}"
    gateway = await editor(dragoman, "--worktree", agents={"scripted": agent("--caps", caps)})
    session, folder = await opened(gateway, workspace)
    await gateway.prompt(session, f"fswrite {folder}/c new")
    forked = await gateway.request("session/fork", {"sessionId": session, "cwd": str(workspace)})
    own = forked["_meta"]["dragoman"]["worktree"]
    assert own["folder"] == f"{folder}-2"
    assert Path(own["folder"], "c").read_text() == "new"
    turn = await gateway.prompt(forked["sessionId"], f"fswrite {own['folder']}/c other\nterminal pwd")
    assert turn.report("terminal/output")["result"]["output"].strip() == own["folder"]
    assert (folder / "c").read_text() == "new"
    deleted = await gateway.request("session/delete", {"sessionId": forked["sessionId"]})
    assert deleted["_meta"]["dragoman"]["worktree"]["branch"] == own["branch"]
    deleted = await gateway.request(
        "session/delete", {"sessionId": session, "_meta": {"dragoman": {"discard": True}}}
    )
    assert deleted == {}
    assert (folder.exists(), Path(own["folder"]).exists()) == (False, True)
