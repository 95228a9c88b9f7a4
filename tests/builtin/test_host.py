"""Python agents of the user's own, hosted in their own process."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.builtin.host import EntryError, load_entry
from support.agents.builtin_process import Builtin, said
from support.gateway_process import Start
from support.rpc_peer import RpcFailure

EXAMPLES = Path(__file__).parents[2] / "examples"


async def test_the_examples_run_behind_the_gateway(dragoman: Start, workspace: Path) -> None:
    entry = {"kind": "python", "entry": f"{EXAMPLES / 'plain_agent.py'}:answer"}
    gateway = await dragoman("acp", "counter", agents={"counter": entry})
    gateway.on("session/request_permission", {"outcome": {"outcome": "selected", "optionId": "allow"}})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    first = await gateway.prompt(session, "one two three")
    assert said(first) == "This is prompt number 1 of this session. It has 3 words."
    assert first.stop_reason == "end_turn"
    assert "number 2" in said(await gateway.prompt(session, "again"))


async def test_an_agent_of_the_official_sdk_is_hosted_the_same_way(dragoman: Start, workspace: Path) -> None:
    entry = {"kind": "python", "entry": f"{EXAMPLES / 'sdk_agent.py'}:Echo"}
    gateway = await dragoman("acp", "echo", agents={"echo": entry})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    assert said(await gateway.prompt(session, "hello")) == "You said: hello"


async def hosted(home: Path, code: str) -> Builtin:
    file = home / "mine.py"
    file.write_text(code)
    return await Builtin.start(home, f"{file}:answer", module="dragoman.builtin.host")


async def test_a_function_may_just_return_its_answer(home: Path, workspace: Path) -> None:
    agent = await hosted(home, "async def answer(prompt):\n    print('noise')\n    return prompt.upper()\n")
    session = await agent.new_session(workspace)
    assert said(await agent.prompt(session, "loud")) == "LOUD"
    assert await agent.stop() == 0


async def test_a_function_that_fails_fails_its_prompt_alone(home: Path, workspace: Path) -> None:
    agent = await hosted(
        home,
        "async def answer(prompt):\n    if prompt == 'bad': raise KeyError('why')\n    return 'good'\n",
    )
    session = await agent.new_session(workspace)
    failed = await agent.prompt(session, "bad")
    assert failed.error is not None
    assert "KeyError" in failed.error.message
    assert said(await agent.prompt(session, "fine")) == "good"
    with pytest.raises(RpcFailure, match="Session not found"):
        await agent.request("session/prompt", {"sessionId": "nobody", "prompt": []})
    assert await agent.stop() == 0


async def test_a_function_is_cancelled(home: Path, workspace: Path) -> None:
    agent = await hosted(
        home,
        "import asyncio\n"
        "async def answer(prompt, turn):\n    await turn.say('working')\n    await asyncio.sleep(3600)\n",
    )
    session = await agent.new_session(workspace)
    turn = agent.start_prompt(session, "wait")
    await agent.text(session, "working")
    agent.cancel(session)
    assert (await turn).stop_reason == "cancelled"
    assert await agent.stop() == 0


async def test_a_cancel_right_behind_the_prompt_counts(home: Path, workspace: Path) -> None:
    agent = await hosted(home, "import asyncio\nasync def answer(prompt):\n    await asyncio.sleep(3600)\n")
    session = await agent.new_session(workspace)
    with agent.in_one_write():
        turn = agent.start_prompt(session, "wait")
        agent.cancel(session)
    assert (await turn).stop_reason == "cancelled"
    assert await agent.stop() == 0


async def test_what_is_printed_at_import_is_no_message(home: Path, workspace: Path) -> None:
    agent = await hosted(home, "print('hello')\nasync def answer(prompt):\n    return 'good'\n")
    session = await agent.new_session(workspace)
    assert said(await agent.prompt(session, "fine")) == "good"
    assert await agent.stop() == 0


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("nonsense", "not of the form"),
        ("no_such_module_here:Agent", "No module named"),
        ("json:nothing", "has no 'nothing'"),
        ("/no/such/file.py:Agent", "There is no file"),
    ],
)
def test_an_entry_that_leads_nowhere_is_told(entry: str, message: str) -> None:
    with pytest.raises(EntryError, match=message):
        load_entry(entry)
