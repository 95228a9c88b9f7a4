"""Rules see the host's paths of an agent in a box."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from support.clients.sample_answers import CANCELLED
from support.gateway_process import Start
from support.sandboxes.sandbox_kinds import Kind
from support.store.journal_reader import records

RULES = [
    {
        "name": "sources",
        "decision": "allow",
        "access": "write",
        "paths": ["{workspace}/src/**"],
        "boxed": True,
    },
    {"name": "outside", "decision": "deny", "access": "write", "outside_workspace": True},
]


async def test_paths_inside_a_box_are_matched_as_those_of_the_host(
    dragoman: Start, bubblewrap: Kind, project: Path, home: Path
) -> None:
    gateway = await dragoman("acp", "scripted", policy={"rules": RULES}, **bubblewrap.config())
    await gateway.initialize()
    gateway.on("session/request_permission", CANCELLED)
    session = await gateway.new_session(project)
    inside = bubblewrap.inside

    async def decided(tool: dict[str, Any]) -> str:
        question = json.dumps({"toolCall": {"toolCallId": "c1", **tool}})
        heard = (await gateway.prompt(session, f"permission {question}")).report("permission")["result"]
        return str(heard["outcome"].get("optionId"))

    edit = {"name": "Write", "kind": "edit"}
    assert await decided({**edit, "rawInput": {"file_path": f"{inside}/src/a.txt"}}) == "yes"
    assert await decided({**edit, "rawInput": {"file_path": f"{inside}/b.txt"}}) == "None"  # asked
    assert await decided({**edit, "rawInput": {"file_path": "/etc/passwd"}}) == "no"
    assert await decided({**edit, "rawInput": {"file_path": f"{inside}/.git/config"}}) == "no"
    assert (
        await decided({"kind": "execute", "rawInput": {"command": "touch x", "cwd": f"{inside}/.."}}) == "no"
    )
    allowed = records(home, session, "decision")[0]["act"]
    assert (allowed["boxed"], allowed["paths"][0]["path"]) == (True, str(project / "src" / "a.txt"))
