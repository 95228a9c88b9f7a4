"""Claude Code and Codex in one session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agents.native.doubles import claude, codex
from dragoman.agents.native.duet import route
from support.gateway_process import GatewayProcess, Start
from support.rpc_peer import is_update


@pytest.fixture
async def client(dragoman: Start, tmp_path: Path) -> GatewayProcess:
    gateway = await dragoman("acp", "claude", agents={"claude": claude(tmp_path), "codex": codex(tmp_path)})
    await gateway.initialize()
    return gateway


def text(words: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": words}]


@pytest.mark.parametrize(
    ("words", "asked", "rest"),
    [
        ("/codex dig deep", "codex", text("dig deep")),
        ("/claude dig", "claude", text("dig")),
        ("/codex", "codex", []),
        ("/codex\nfix it\nall", "codex", text("fix it\nall")),
        ("  /codex\tdig", "codex", text("dig")),
        ("", None, text("")),
        ("/codexes dig", None, text("/codexes dig")),
        ("dig /codex", None, text("dig /codex")),
    ],
)
def test_a_name_behind_a_slash_says_who_is_asked(words: str, asked: str | None, rest: object) -> None:
    assert route(text(words), ("claude", "codex")) == (asked, rest)


async def test_the_other_is_asked_in_the_same_session_and_knows_what_was_said(
    client: GatewayProcess, workspace: Path
) -> None:
    session = await client.new_session(workspace)
    told = await client.next_message(is_update(session, "available_commands_update"))
    assert told["params"]["update"]["availableCommands"][-1]["name"] == "codex"
    await client.prompt(session, "the word is tamarind")
    answer = "".join((await client.prompt(session, "/codex plan dig\nhello")).texts)
    assert "Claude Code: the word is tamarind" in answer
    assert answer.endswith("hello")
    answer = "".join((await client.prompt(session, "and you?")).texts)
    assert "Codex: " in answer
    assert answer.endswith("and you?")


async def test_a_name_alone_changes_who_answers(client: GatewayProcess, workspace: Path) -> None:
    session = await client.new_session(workspace)
    assert (await client.prompt(session, "/codex")).texts == ["Codex answers from now on."]
    assert "workspaceWrite" not in "".join((await client.prompt(session, "report")).texts)
    assert '"config": {}' in "".join((await client.prompt(session, "report")).texts)
    await client.prompt(session, "/claude")
    assert '"folders"' in "".join((await client.prompt(session, "report")).texts)


async def test_the_guests_questions_and_its_cancel_are_the_sessions(
    client: GatewayProcess, workspace: Path
) -> None:
    session = await client.new_session(workspace)
    running = client.start_prompt(session, "/codex bash make")
    asked = await client.next_message("session/request_permission")
    assert asked["params"]["sessionId"] == session
    client.cancel(session)
    assert (await running).stop_reason == "cancelled"


async def test_a_cancel_while_the_guest_is_being_started_settles_at_once(
    dragoman: Start, tmp_path: Path, workspace: Path
) -> None:
    agents = {"claude": claude(tmp_path), "codex": codex(tmp_path, "--x-mute")}
    gateway = await dragoman("acp", "claude", agents=agents, limits={"cancel_timeout": 600})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    with gateway.in_one_write():
        turn = gateway.start_prompt(session, "/codex are you there?")
        gateway.cancel(session)
    assert (await turn).stop_reason == "cancelled"
    assert "".join((await gateway.prompt(session, "and you?")).texts).endswith("and you?")


async def test_a_guest_that_dies_takes_only_its_turn_with_it(client: GatewayProcess, workspace: Path) -> None:
    session = await client.new_session(workspace)
    turn = await client.prompt(session, "/codex die 3")
    assert turn.error is not None
    assert "Something broke inside" in turn.error.message
    assert "".join((await client.prompt(session, "/claude")).texts)
    assert (await client.prompt(session, "/codex still here")).texts[-1].endswith("here")


async def test_a_parked_duet_comes_back_with_its_guest_and_who_answers(
    dragoman: Start, tmp_path: Path, workspace: Path
) -> None:
    agents = {"claude": claude(tmp_path), "codex": codex(tmp_path)}
    gateway = await dragoman("acp", "claude", agents=agents, sessions={"park_after": 0.3})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    await gateway.prompt(session, "hello")
    await gateway.prompt(session, "/codex and you?")
    await gateway.prompt(session, "/codex")
    await gateway.logged("session parked")
    answer = "".join((await gateway.prompt(session, "recall")).texts)
    # Codex itself, in the thread that began with what it had missed.
    assert answer.startswith('recall ["This was said in the conversation')


async def test_there_is_no_duet_without_the_other(dragoman: Start, tmp_path: Path, workspace: Path) -> None:
    gateway = await dragoman("acp", "claude", agents={"claude": {**claude(tmp_path), "duet": False}})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    told = await gateway.next_message(is_update(session, "available_commands_update"))
    names = [each["name"] for each in told["params"]["update"]["availableCommands"]]
    assert "codex" not in names
    assert "".join((await gateway.prompt(session, "/codex hello")).texts) == "/codex hello"
