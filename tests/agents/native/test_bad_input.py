"""Programs that are missing, old, logged out, killed, broken or forgetful: what people read, and what goes on."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from agents.native.doubles import claude, codex
from dragoman.wire import limits
from support.gateway_process import GatewayProcess, Start
from support.rpc_peer import RpcFailure, is_update

DOUBLES = {"claude": claude, "codex": codex}
both = pytest.mark.parametrize("name", ["claude", "codex"])


async def begin(dragoman: Start, tmp_path: Path, name: str, *flags: str, **settings: Any) -> GatewayProcess:
    gateway = await dragoman("acp", name, agents={name: {**DOUBLES[name](tmp_path, *flags), **settings}})
    await gateway.initialize()
    return gateway


@pytest.mark.parametrize(
    ("name", "words"),
    [("claude", "npm install -g @anthropic-ai/claude-code"), ("codex", "npm install -g @openai/codex")],
)
async def test_a_missing_program_is_named_with_its_installation(
    dragoman: Start, name: str, words: str
) -> None:
    agents = {name: {"kind": name, "command": [name]}}
    gateway = await dragoman("acp", name, agents=agents, env={"PATH": "/nonexistent"})
    with pytest.raises(RpcFailure, match=words):
        await gateway.initialize()


@pytest.mark.parametrize(
    ("name", "flag", "words"),
    [
        (
            "claude",
            ("--x-version", "1.0.3"),
            "too old: it is 1.0.3.*npm install -g @anthropic-ai/claude-code",
        ),
        ("codex", ("--x-no-server",), "too old to have an app-server.*npm install -g @openai/codex"),
        (
            "codex",
            ("--x-no-threads",),
            "too old: it does not know thread/start.*npm install -g @openai/codex",
        ),
    ],
)
async def test_an_old_program_is_to_be_installed_again(
    dragoman: Start, tmp_path: Path, workspace: Path, name: str, flag: tuple[str, ...], words: str
) -> None:
    with pytest.raises(RpcFailure, match=words):
        gateway = await begin(dragoman, tmp_path, name, *flag)
        await gateway.new_session(workspace)


@pytest.mark.parametrize(
    ("name", "script", "words"),
    [("claude", "fail 401", "claude /login"), ("codex", "fail unauthorized", "codex login")],
)
async def test_a_program_that_is_logged_out_asks_for_a_login(
    dragoman: Start, tmp_path: Path, workspace: Path, name: str, script: str, words: str
) -> None:
    gateway = await begin(dragoman, tmp_path, name)
    turn = await gateway.prompt(await gateway.new_session(workspace), script)
    assert turn.error is not None
    assert (turn.error.code, words in turn.error.message) == (-32000, True)
    assert turn.error.data["authMethods"][0]["id"] == f"{name}-login"


@both
async def test_a_killed_program_fails_its_turn_alone(
    dragoman: Start, tmp_path: Path, workspace: Path, name: str
) -> None:
    gateway = await begin(dragoman, tmp_path, name)
    doomed, other = [await gateway.new_session(workspace) for _ in range(2)]
    before = {pid for pid, line in gateway.processes().items() if f"scripted_{name}" in line}
    for session in (doomed, other):
        await gateway.prompt(session, "here")
    running = gateway.start_prompt(doomed, "think well\nhang")
    await gateway.next_message(is_update(doomed, "agent_thought_chunk"))
    for pid in sorted(before)[:1]:  # the first session's
        os.kill(pid, signal.SIGKILL)
    turn = await running
    assert turn.error is not None
    assert "SIGKILL" in turn.error.message
    assert "".join((await gateway.prompt(other, "still here")).texts) == "still here"
    assert "".join((await gateway.prompt(doomed, "back again")).texts) == "back again"


@both
async def test_a_program_that_prints_only_garbage_is_ended(
    dragoman: Start, tmp_path: Path, workspace: Path, name: str
) -> None:
    gateway = await begin(dragoman, tmp_path, name)
    session = await gateway.new_session(workspace)
    await gateway.prompt(session, "here")
    turn = await gateway.prompt(session, f"garbage {limits.GARBAGE_LINES}\nhang")
    assert turn.error is not None
    assert turn.error.data["reason"] == "agent_exited"
    assert "".join((await gateway.prompt(session, "back again")).texts) == "back again"


@pytest.mark.parametrize(
    ("name", "flag", "words"),
    [
        ("claude", "--x-mute", "exited with code 3.*settings.json"),
        ("codex", "--x-bad-config", "untrusted is no longer supported.*config.toml"),
    ],
)
async def test_a_program_that_refuses_its_configuration_says_where_to_correct_it(
    dragoman: Start, tmp_path: Path, workspace: Path, name: str, flag: str, words: str
) -> None:
    with pytest.raises(RpcFailure) as failure:
        gateway = await begin(dragoman, tmp_path, name, flag)
        await gateway.new_session(workspace)
    told = " ".join(failure.value.message.split())
    assert all(word in told for word in words.split(".*"))
    assert told.count("Its last lines on stderr") <= 1


@both
async def test_a_session_that_the_program_forgot_is_told_anew(
    dragoman: Start, tmp_path: Path, workspace: Path, name: str
) -> None:
    """Its id is unknown by now: the conversation is not lost, and people hear what happened."""
    first = await begin(dragoman, tmp_path, name)
    session = await first.new_session(workspace)
    await first.prompt(session, "the word is tamarind")
    await first.stop()
    for file in [*(tmp_path / "claude").rglob("*.jsonl"), *(tmp_path / "codex").glob("*.json")]:
        file.unlink()
    second = await begin(dragoman, tmp_path, name)
    params = {"sessionId": session, "cwd": str(workspace), "mcpServers": []}
    result = await second.request("session/resume", params)
    assert result["_meta"]["dragoman"]["contextLost"] is True
    answer = "".join((await second.prompt(session, "go on")).texts)
    assert "the word is tamarind" in answer


@both
async def test_an_id_that_nobody_knows_is_refused(
    dragoman: Start, tmp_path: Path, workspace: Path, name: str
) -> None:
    gateway = await begin(dragoman, tmp_path, name)
    params = {"sessionId": "dgm_never", "cwd": str(workspace), "mcpServers": []}
    with pytest.raises(RpcFailure) as failure:
        await gateway.request("session/resume", params)
    assert failure.value.code == -32002
