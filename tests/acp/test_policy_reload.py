"""Policy files that change while sessions run."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.clients.sample_answers import CANCELLED
from support.gateway_process import GatewayProcess, Start, toml

LS = {"name": "listing", "decision": "allow", "command": [["ls"]]}
QUESTION = {"toolCall": {"toolCallId": "c1", "kind": "execute", "rawInput": {"command": "ls"}}}


def with_rules(home: Path, *rules: dict[str, Any]) -> None:
    """Replace the rules in the user's file."""
    file = home / "config.toml"
    kept = [
        line
        for line in file.read_text().splitlines()
        if not line.startswith(("rules =", "remember =", "[policy]"))
    ]
    file.write_text("\n".join(kept) + "\n" + toml({"policy": {"remember": "agent", "rules": list(rules)}}))


async def until(gateway: GatewayProcess, session: str, wanted: Callable[[Any], bool]) -> Any:
    """Ask about `ls` until what the agent hears is as wanted: a change is seen within a second."""
    async with asyncio.timeout(20):
        while True:
            turn = await gateway.prompt(session, f"permission {json.dumps(QUESTION)}")
            if wanted(turn.report("permission")):
                return turn


def chosen(answer: Any) -> Any:
    return answer["result"]["outcome"].get("optionId")


async def test_a_rule_that_is_written_while_a_session_runs_decides_and_is_announced(
    dragoman: Start, home: Path, workspace: Path
) -> None:
    gateway = await dragoman(policy={"rules": [{**LS, "command": [["date"]]}]})
    await gateway.initialize(clientCapabilities={"session": {"notices": {}}})
    gateway.on("session/request_permission", CANCELLED)
    session = await gateway.new_session(workspace)
    await until(gateway, session, lambda answer: chosen(answer) is None)
    with_rules(home, LS)
    await until(gateway, session, lambda answer: chosen(answer) == "yes")
    assert [note for note in notices(gateway) if "allows more than before" in note and "listing" in note]
    with_rules(home, {**LS, "decision": "deny"})
    await until(gateway, session, lambda answer: chosen(answer) == "no")


async def test_a_broken_file_is_told_and_the_rules_stay(dragoman: Start, home: Path, workspace: Path) -> None:
    gateway = await dragoman(policy={"rules": [LS]})
    await gateway.initialize(clientCapabilities={"session": {"notices": {}}})
    gateway.on("session/request_permission", CANCELLED)
    session = await gateway.new_session(workspace)
    await until(gateway, session, lambda answer: chosen(answer) == "yes")
    with (home / "config.toml").open("a") as file:
        file.write("\n[[policy.rules\n")
    await until(gateway, session, lambda answer: bool(notices(gateway)))
    assert "stay in force" in notices(gateway)[0] and "config.toml" in notices(gateway)[0]
    await until(gateway, session, lambda answer: chosen(answer) == "yes")


def notices(gateway: GatewayProcess) -> list[str]:
    updates = [
        each["params"]["update"] for each in gateway.received if each.get("method") == "session/update"
    ]
    return [update["title"] for update in updates if update["sessionUpdate"] == "notice"]


async def test_acp_says_after_initialize_which_rule_fails_its_examples(
    dragoman: Start, workspace: Path
) -> None:
    gateway = await dragoman(policy={"rules": [{**LS, "not_match": ["ls -l"]}]})
    await gateway.initialize(clientCapabilities={"session": {"notices": {}}})
    gateway.on("session/request_permission", CANCELLED)
    await gateway.logged(r"`ls -l` in `not_match` is matched")
    session = await gateway.new_session(workspace)
    turn = await until(gateway, session, lambda answer: True)
    assert chosen(turn.report("permission")) is None  # the rule does not allow
    assert "listing" in notices(gateway)[0]


async def test_costly_examples_of_a_repository_do_not_hold_up_another_session(
    dragoman: Start, workspace: Path, tmp_path: Path
) -> None:
    hostile = tmp_path / "hostile"
    (hostile / ".git").mkdir(parents=True)
    (hostile / ".dragoman").mkdir()
    line = "; ".join(["cat x"] * 130)
    rule = {"decision": "deny", "name": "slow", "command": [["date"]], "not_match": [line] * 120}
    (hostile / ".dragoman" / "config.toml").write_text(toml({"policy": {"narrow": [rule]}}))
    gateway = await dragoman(policy={"rules": [LS]})
    await gateway.initialize()
    gateway.on("session/request_permission", CANCELLED)
    ordinary, asking = await gateway.new_session(workspace), await gateway.new_session(hostile)
    await gateway.prompt(ordinary, "echo one")
    question = gateway.start_prompt(asking, f"permission {json.dumps(QUESTION)}")
    started = asyncio.get_running_loop().time()
    while not question.done():
        await gateway.prompt(ordinary, "echo two")
        now = asyncio.get_running_loop().time()
        assert now - started < 5
        started = now
    assert chosen((await question).report("permission")) == "yes"
