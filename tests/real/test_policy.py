"""Rules on facts decide about what real agents ask, in their own shapes."""

from __future__ import annotations

from pathlib import Path

from real.agents import RealAgent
from real.client import chosen, said
from real.conftest import Begin
from support.store.journal_reader import records

RULES = [
    {"name": "ran", "decision": "allow", "command": [["touch", "ran.txt"]]},
    {"name": "no other", "decision": "deny", "command": [["touch", "other.txt"]], "reason": "Use ran.txt."},
]


async def test_rules_decide_about_the_commands_of_an_agent(
    begin: Begin, real: RealAgent, workspace: Path, home: Path
) -> None:
    gateway = await begin(policy={"rules": RULES})
    asked: list[str] = []

    def ask(params: dict[str, object]) -> object:
        asked.append(str(params))
        return chosen(params, "reject_once")

    gateway.on("session/request_permission", ask)
    session = await gateway.open_session(workspace)
    turn = await gateway.prompt(session, "run: touch ran.txt")
    assert "The tool said:" in said(turn.updates)
    assert (workspace / "ran.txt").exists()
    await gateway.prompt(session, "run: touch other.txt")
    assert not (workspace / "other.txt").exists()
    assert not asked
    decided = [(record["by"], record["act"]["kind"]) for record in records(home, session, "decision")]
    assert decided == [("ran", "execute"), ("no other", "execute")]
    await gateway.prompt(session, "run: touch third.txt")
    assert len(asked) == 1 and not (workspace / "third.txt").exists()
