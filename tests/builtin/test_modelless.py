"""What a newcomer sees without a key, a network or a model."""

from __future__ import annotations

import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path

from support.agents.builtin_process import Builtin, calls, said, shown, updates
from support.rpc_peer import Message


async def test_a_prompt_is_answered_honestly(agent: Builtin, workspace: Path) -> None:
    session = await agent.new_session(workspace)
    turn = await agent.prompt(session, "write me a poem")
    assert turn.stop_reason == "end_turn"
    assert "not a language model" in said(turn)
    assert "ANTHROPIC_API_KEY" in said(turn)
    assert "/help" in said(turn)


async def test_help_lists_every_command(agent: Builtin, workspace: Path) -> None:
    session = await agent.new_session(workspace)
    turn = await agent.prompt(session, "/help")
    for name in ("read", "search", "run", "edit", "diff", "plan", "help", "model"):
        assert f"`/{name}" in said(turn)
    commands = (await agent.next_message(lambda m: "availableCommands" in str(m)))["params"]["update"]
    assert {"read", "run", "edit"} <= {command["name"] for command in commands["availableCommands"]}


async def test_read_shows_a_file_as_a_tool_call(agent: Builtin, workspace: Path) -> None:
    (workspace / "notes.txt").write_text("one\ntwo\nthree\n")
    session = await agent.new_session(workspace)
    [call] = calls(await agent.prompt(session, "/read notes.txt"))
    assert (call["kind"], call["status"]) == ("read", "completed")
    assert call["locations"] == [{"path": str(workspace / "notes.txt"), "line": 1}]
    assert call["rawInput"] == {"path": "notes.txt"}
    assert shown(call) == "one\ntwo\nthree\n"
    [part] = calls(await agent.prompt(session, "/read notes.txt:2-2"))
    assert shown(part).startswith("two\n")
    told = said(await agent.prompt(session, "/read notes.txt:1-2"))
    assert "[lines 1 to 2" in told and "read on with /read notes.txt:3-4]" in told
    assert not agent.questions, "reading needs no question"


async def test_search_finds_lines(agent: Builtin, workspace: Path) -> None:
    (workspace / "a.py").write_text("import os\nprint(1)\n")
    (workspace / "b.py").write_text("print(2)\n")
    session = await agent.new_session(workspace)
    [call] = calls(await agent.prompt(session, r"/search print\(\d\)"))
    assert (call["kind"], call["status"]) == ("search", "completed")
    assert shown(call) == "a.py:2: print(1)\nb.py:1: print(2)"


async def test_run_asks_first_and_shows_the_output(agent: Builtin, workspace: Path) -> None:
    session = await agent.new_session(workspace)
    [call] = calls(await agent.prompt(session, "/run echo hello; pwd"))
    assert (call["kind"], call["status"]) == ("execute", "completed")
    assert f"hello\n{workspace}" in shown(call)
    assert call["rawOutput"]["exitCode"] == 0
    [question] = agent.questions
    assert question["toolCall"]["rawInput"] == {"command": "echo hello; pwd"}
    assert [option["kind"] for option in question["options"]] == [
        "allow_once",
        "allow_always",
        "reject_once",
    ]


async def test_a_command_says_what_it_brought(agent: Builtin, workspace: Path) -> None:
    (workspace / "a.py").write_text("# one\n")
    session = await agent.new_session(workspace)
    assert said(await agent.prompt(session, "/search one")) == "```\na.py:1: # one\n```\n"
    assert said(await agent.prompt(session, "/read a.py")) == "```\n# one\n```\n"
    turn = await agent.prompt(session, "/run echo hello")
    assert said(turn) == "```\nhello\n[exit code 0]\n```\n"
    fences = [update.get("_meta") for update in updates(turn, "agent_message_chunk")]
    assert fences == [{"dragoman": {"fence": True}}, None, {"dragoman": {"fence": True}}]
    assert said(await agent.prompt(session, "/edit a.py one two")) == "Edited a.py: 1 change."
    assert "-# one\n+# two\n" in said(await agent.prompt(session, "/diff"))


async def test_diff_tells_of_edits_of_an_earlier_life(
    builtin: Callable[[], Awaitable[Builtin]], workspace: Path
) -> None:
    (workspace / "a.txt").write_text("one\n")
    first = await builtin()
    session = await first.new_session(workspace)
    await first.prompt(session, "/edit a.txt one two")
    await first.stop()
    second = await builtin()
    await second.request("session/resume", {"sessionId": session, "cwd": str(workspace), "mcpServers": []})
    assert "-one\n+two\n" in said(await second.prompt(session, "/diff"))
    (workspace / "a.txt").unlink()
    assert "-one\n" in said(await second.prompt(session, "/diff"))
    assert not second.questions, "git is not asked"


async def test_diff_without_changes_of_the_session_runs_nothing(agent: Builtin, workspace: Path) -> None:
    session = await agent.new_session(workspace)
    assert said(await agent.prompt(session, "/diff")) == "This session has changed no file."
    subprocess.run(["git", "init", "--quiet"], cwd=workspace, check=True)
    (workspace / "new.txt").write_text("new\n")
    turn = await agent.prompt(session, "/diff")
    assert "changed no file. For all changes that git sees: `/run git status" in said(turn)
    assert not calls(turn) and not agent.questions
    await agent.prompt(session, "/mode read-only")
    assert "git" not in said(await agent.prompt(session, "/diff")), "/run is not available there"


async def test_a_rejected_command_does_not_run(agent: Builtin, workspace: Path) -> None:
    session = await agent.new_session(workspace)
    agent.answer = "reject_once"
    turn = await agent.prompt(session, "/run touch made")
    assert calls(turn)[0]["status"] == "failed"
    assert turn.stop_reason == "end_turn"
    assert said(turn) == shown(calls(turn)[0]) == "Not done: it was not allowed."
    assert not (workspace / "made").exists()


async def test_a_failing_command_is_a_failed_call(agent: Builtin, workspace: Path) -> None:
    session = await agent.new_session(workspace)
    [call] = calls(await agent.prompt(session, "/run echo oops >&2; exit 3"))
    assert call["status"] == "failed"
    assert "oops" in shown(call)
    assert "exit code 3" in shown(call)


async def test_edit_shows_the_diff_before_it_changes_anything(agent: Builtin, workspace: Path) -> None:
    file = workspace / "notes.txt"
    file.write_text("hello world\n")
    session = await agent.new_session(workspace)
    before = []

    def allow(params: Message) -> Message:
        before.append((file.read_text(), params["toolCall"]["content"]))
        return {"outcome": {"outcome": "selected", "optionId": "allow_once"}}

    agent.on("session/request_permission", allow)
    [call] = calls(await agent.prompt(session, '/edit notes.txt world "wide world"'))
    diff = {"type": "diff", "path": str(file), "oldText": "hello world\n", "newText": "hello wide world\n"}
    assert before == [("hello world\n", [diff])]
    assert file.read_text() == "hello wide world\n"
    assert call["content"] == [diff]
    [changes] = calls(await agent.prompt(session, "/diff"))
    assert changes["content"] == [diff]


async def test_an_ambiguous_edit_is_refused(agent: Builtin, workspace: Path) -> None:
    (workspace / "notes.txt").write_text("a a\n")
    session = await agent.new_session(workspace)
    turn = await agent.prompt(session, "/edit notes.txt a b")
    assert "is there 2 times" in said(turn)
    assert calls(turn)[0]["status"] == "failed"
    assert not agent.questions


async def test_plan_makes_a_plan_and_ticks_it_off(agent: Builtin, workspace: Path) -> None:
    session = await agent.new_session(workspace)
    turn = await agent.prompt(session, "/plan look around; do it")
    [plan] = updates(turn, "plan")
    assert [entry["content"] for entry in plan["entries"]] == ["look around", "do it"]
    [plan] = updates(await agent.prompt(session, "/plan done 1"), "plan")
    assert [entry["status"] for entry in plan["entries"]] == ["completed", "pending"]


async def test_model_says_how_to_get_one(agent: Builtin, workspace: Path) -> None:
    session = await agent.new_session(workspace)
    assert "base_url" in said(await agent.prompt(session, "/model"))


async def test_wrong_usage_is_told(agent: Builtin, workspace: Path) -> None:
    session = await agent.new_session(workspace)
    assert "Usage: /edit" in said(await agent.prompt(session, "/edit"))
    assert "no command `/nonsense`" in said(await agent.prompt(session, "/nonsense"))
    assert "is outside of the workspace" in said(await agent.prompt(session, "/read /etc/passwd"))
    assert "There is no file missing.txt" in said(await agent.prompt(session, "/read missing.txt"))


async def test_a_path_is_not_a_command(agent: Builtin, workspace: Path) -> None:
    session = await agent.new_session(workspace)
    assert "not a language model" in said(await agent.prompt(session, "/etc/hosts"))


async def test_a_recap_in_front_of_a_prompt_is_neither_a_command_nor_a_title(
    agent: Builtin, workspace: Path
) -> None:
    (workspace / "notes.txt").write_text("one\n")
    session = await agent.new_session(workspace)
    recap = {"type": "text", "text": "This conversation began…", "_meta": {"dragoman": {"recap": True}}}
    prompt = [recap, {"type": "text", "text": "/read notes.txt"}]
    await agent.request("session/prompt", {"sessionId": session, "prompt": prompt})
    updates = agent.of(session)
    assert [each["status"] for each in updates if each["sessionUpdate"] == "tool_call_update"][
        -1
    ] == "completed"
    assert [each["title"] for each in updates if each["sessionUpdate"] == "session_info_update"] == [
        "/read notes.txt"
    ]
