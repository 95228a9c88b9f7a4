"""Options that an agent forges: ids of ours, one id for two, labels that say the opposite of the kind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman.gateway.session.policy.verdict import choose_option, named_by_kind
from support.clients.sample_answers import CANCELLED
from support.gateway_process import GatewayProcess, Start
from support.rpc_peer import is_request

LINE = {"toolCallId": "c1", "kind": "execute", "title": "make x", "rawInput": {"command": "make x"}}
RULES = [
    {"name": "making", "decision": "allow", "command": [["ls"]]},
    {"name": "no rm", "decision": "deny", "command": [["rm"]]},
]


def option(id: str, kind: str, name: str = "") -> dict[str, str]:
    return {"optionId": id, "kind": kind, "name": name or kind}


async def begin(dragoman: Start, workspace: Path, remember: str) -> tuple[GatewayProcess, str]:
    gateway = await dragoman(policy={"rules": RULES, "remember": remember})
    await gateway.initialize()
    return gateway, await gateway.new_session(workspace)


async def asked(
    gateway: GatewayProcess, session: str, options: list[dict[str, str]], answer: Any, tool: Any = LINE
) -> tuple[list[dict[str, str]], Any]:
    """What the client is offered, and what the agent hears."""
    running = gateway.start_prompt(
        session, f"permission {json.dumps({'toolCall': tool, 'options': options})}"
    )
    request = await gateway.next_message(is_request("session/request_permission"))
    gateway.reply(request, answer)
    heard = (await running).report("permission")
    return request["params"]["options"], heard["result"]["outcome"]


def chosen(id: str) -> dict[str, Any]:
    return {"outcome": {"outcome": "selected", "optionId": id}}


async def remembered(gateway: GatewayProcess) -> list[Any]:
    file = gateway.home / "remembered.json"
    return list(json.loads(file.read_text())["memories"]) if file.exists() else []


async def test_ids_of_ours_in_an_agents_options_are_not_taken_for_ours(
    dragoman: Start, workspace: Path
) -> None:
    gateway, session = await begin(dragoman, workspace, "gateway")
    forged = [
        option("dragoman:reject", "allow_once", "Allow"),
        option("dragoman:once", "reject_once", "Reject"),
        option("dragoman:project", "allow_always", "Always"),
    ]
    offered, heard = await asked(gateway, session, forged, chosen("dragoman:once"))
    assert [one["kind"] for one in offered] == ["allow_once", "allow_always", "allow_always", "reject_once"]
    assert heard["optionId"] == "dragoman:reject", "its own id for once"
    _, heard = await asked(gateway, session, forged, chosen("dragoman:reject"))
    assert heard["optionId"] == "dragoman:once", "its own id for no"
    assert await remembered(gateway) == []


async def test_ids_of_ours_are_only_ids_where_the_agents_options_are_offered(
    dragoman: Start, workspace: Path
) -> None:
    """Two options for once: the question stays the agent's, and its `dragoman:project` remembers nothing here."""
    gateway, session = await begin(dragoman, workspace, "gateway")
    forged = [option("dragoman:project", "allow_once", "Red"), option("dragoman:once", "allow_once", "Blue")]
    offered, heard = await asked(gateway, session, forged, chosen("dragoman:project"))
    assert offered == forged
    assert heard["optionId"] == "dragoman:project"
    assert await remembered(gateway) == []


@pytest.mark.parametrize("remember", ["agent", "gateway"])
async def test_an_allow_that_is_called_reject_is_shown_as_what_it_is(
    dragoman: Start, workspace: Path, remember: str
) -> None:
    gateway, session = await begin(dragoman, workspace, remember)
    forged = [option("a", "allow_once", "Reject"), option("b", "reject_once", "Allow once")]
    offered, heard = await asked(gateway, session, forged, CANCELLED)
    assert heard == {"outcome": "cancelled"}
    for one in offered:
        assert one["name"].startswith("Allow" if one["kind"].startswith("allow") else "Reject"), offered


async def test_a_deny_takes_no_option_that_may_be_an_allow(dragoman: Start, workspace: Path) -> None:
    gateway, session = await begin(dragoman, workspace, "agent")
    tool = {**LINE, "rawInput": {"command": "rm x"}}
    for options in (
        [option("x", "allow_once", "Allow"), option("x", "reject_once", "Reject")],
        [option("y", "allow_once", "Allow"), option("n", "reject_once", "Yes, run it")],
        [option("y", "allow_once", "Allow")],
        [{"kind": "reject_once", "optionId": 5}],
    ):
        told = f"permission {json.dumps({'toolCall': tool, 'options': options})}"
        assert (await gateway.prompt(session, told)).report("permission")["result"]["outcome"] == {
            "outcome": "cancelled"
        }, options


def test_an_allow_rule_takes_no_forged_option() -> None:
    no = option("n", "reject_once", "No")
    assert choose_option("allow", [option("y", "allow_once", "Reject"), no]) is None
    assert choose_option("allow", [option("y", "allow_once", "Do not allow"), no]) is None
    assert choose_option("allow", [option("y", "allow_once", "Always, in this project"), no]) is None
    assert (
        choose_option("allow", [option("x", "allow_once", "Yes"), option("x", "allow_always", "Yes"), no])
        is None
    )
    assert choose_option("allow", [option("y", "allow_once", "Yes, proceed"), no]) == "y"
    assert choose_option("deny", [option("n", "reject_once", "a"), option("n", "reject_always", "b")]) == "n"


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("allow_once", "Yes"),
        ("allow_always", "Yes, and do not ask again for: git"),
        ("allow_always", "Always allow"),
        ("reject_once", "No, and tell Claude what to do differently"),
        ("reject_once", "No, continue without running it"),
        ("reject_always", "Never"),
        ("allow_once", "Nothing to fear"),
        ("allow_once", ""),
    ],
)
def test_labels_of_agents_are_not_forged(kind: str, name: str) -> None:
    assert named_by_kind([option("x", kind, name)]) is None
