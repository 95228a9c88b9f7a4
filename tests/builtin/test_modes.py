"""Modes and permissions: enforced where tools run."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.agents.custody import Custody
from dragoman.builtin.modes import MODES
from dragoman.builtin.tools.run import scope_of
from support import prerequisites
from support.agents.builtin_process import Builtin, calls, said, updates
from support.agents.builtin_session import BuiltinSession
from support.rpc_peer import RpcFailure

MakeBench = Callable[..., BuiltinSession]


@pytest.fixture
async def bench(workspace: Path) -> AsyncIterator[MakeBench]:
    custody = Custody()
    made: list[BuiltinSession] = []

    def make(**settings: Any) -> BuiltinSession:
        made.append(BuiltinSession(workspace, custody, **settings))
        return made[-1]

    yield make
    for each in made:
        await each.session.close()
    await custody.close()


USES: dict[str, tuple[str, dict[str, Any]]] = {
    "read": ("read", {"path": "a.txt"}),
    "write": ("write", {"path": "new.txt", "content": "x"}),
    "execute": ("run", {"command": "true"}),
    "note": ("plan", {"entries": [{"content": "think"}]}),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("effect", USES)
async def test_the_table_decides(bench: MakeBench, workspace: Path, mode: str, effect: str) -> None:
    if mode == "sandbox" and shutil.which("bwrap") is None:
        prerequisites.skip("bubblewrap", "it is not installed")
    (workspace / "a.txt").write_text("a")
    at = bench(mode=mode)
    tool, arguments = USES[effect]
    outcome = await at.use(tool, **arguments)
    verdict = MODES[mode].verdicts[effect]  # type: ignore[index]
    assert outcome.status == ("refused" if verdict == "deny" else "done"), outcome.text
    assert len(at.person.questions) == (verdict == "ask")
    if verdict == "deny":
        assert MODES[mode].name in outcome.text
        assert tool not in [each.name for each in at.session.toolbox.available()]


async def test_the_box_has_the_workspace_and_nothing_else(
    bench: MakeBench, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("bwrap") is None:
        prerequisites.skip("bubblewrap", "it is not installed")
    secret = tmp_path / "secret"
    secret.write_text("hidden")
    at = bench(mode="sandbox")
    monkeypatch.setenv("OPENAI_API_KEY", "hidden")
    looks = f"touch inside; cat {secret}; echo x > {secret}; ls /etc; env"
    outcome = await at.use("run", command=looks)
    assert "hidden" not in outcome.text
    assert "PATH=" in outcome.text
    assert "passwd\n" in outcome.text
    assert "shadow" not in outcome.text
    assert not (workspace / "inside").exists()
    assert "inside" in (await at.use("list")).text
    assert secret.read_text() == "hidden"
    assert not at.person.questions


async def test_always_is_remembered_for_the_pattern_and_ends_with_the_session(bench: MakeBench) -> None:
    first = bench(answer="allow_always")
    await first.use("run", command="echo one")
    await first.use("run", command="echo two")
    assert len(first.person.questions) == 1
    assert "begin with `echo`" in first.person.questions[0]["options"][1]["name"]
    first.person.answer = "reject_once"
    assert (await first.use("run", command="echo three")).status == "done"
    assert (await first.use("run", command="echo three; rm -rf .")).status == "refused"
    assert (await first.use("run", command="printf x")).status == "refused"
    later = bench(answer="reject_once")
    assert (await later.use("run", command="echo three")).status == "refused"


async def test_always_for_a_folder_covers_what_is_below(bench: MakeBench, workspace: Path) -> None:
    at = bench(answer="allow_always")
    await at.use("write", path="src/a.txt", content="a")
    at.person.answer = "reject_once"
    assert (await at.use("write", path="src/deep/b.txt", content="b")).status == "done"
    assert (await at.use("write", path="top.txt", content="c")).status == "refused"


async def test_the_reason_of_a_rule_is_told_to_the_model(bench: MakeBench) -> None:
    at = bench(answer="reject_once")
    at.person.reason = "Ask the owner."
    outcome = await at.use("run", command="echo one")
    assert (outcome.status, outcome.text) == ("refused", "A rule does not allow this: Ask the owner.")
    assert at.person.questions[0]["toolCall"]["_meta"] == {"dragoman": {"toolName": "run"}}


async def test_once_is_not_remembered(bench: MakeBench) -> None:
    at = bench(answer="allow_once")
    await at.use("run", command="echo one")
    await at.use("run", command="echo one")
    assert len(at.person.questions) == 2


@pytest.mark.parametrize(
    ("command", "key"),
    [
        ("pytest -q tests", "run:pytest"),
        ("git status --short", "run:git status"),
        ("git", "run:git"),
        ("ls; rm x", "run=ls; rm x"),
        ("echo $(rm x)", "run=echo $(rm x)"),
        ("cat a > b", "run=cat a > b"),
        ("a\nb", "run=a\nb"),
        ("git --no-pager diff", "run=git --no-pager diff"),
        ("PYTHONPATH=. pytest", "run=PYTHONPATH=. pytest"),
        ("sudo ls", "run=sudo ls"),
        ("/usr/bin/git status -s", "run:/usr/bin/git status"),
        ("echo `rm x`", "run=echo `rm x`"),
        ("true && rm x", "run=true && rm x"),
    ],
)
def test_only_plain_commands_have_a_pattern(command: str, key: str) -> None:
    assert scope_of(command).key == key


async def test_modes_switch_in_the_middle_of_a_session(agent: Builtin, workspace: Path) -> None:
    session = await agent.new_session(workspace)
    await agent.request("session/set_mode", {"sessionId": session, "modeId": "read-only"})
    turn = await agent.prompt(session, "/run touch made")
    assert "not available in the mode 'Read-Only'" in said(turn)
    assert calls(turn)[0]["status"] == "failed"
    options = await agent.request(
        "session/set_config_option", {"sessionId": session, "configId": "mode", "value": "full"}
    )
    assert options["configOptions"][0]["currentValue"] == "full"
    assert calls(await agent.prompt(session, "/run touch made"))[0]["status"] == "completed"
    turn = await agent.prompt(session, "/mode plan")
    assert updates(turn, "current_mode_update")[0]["currentModeId"] == "plan"


async def test_unknown_modes_and_options_are_refused(agent: Builtin, workspace: Path) -> None:
    session = await agent.new_session(workspace)
    with pytest.raises(RpcFailure, match="Unknown mode"):
        await agent.request("session/set_mode", {"sessionId": session, "modeId": "root"})
    with pytest.raises(RpcFailure, match="Unknown option"):
        await agent.request(
            "session/set_config_option", {"sessionId": session, "configId": "x", "value": "y"}
        )
