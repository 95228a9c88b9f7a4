"""No answer carries paths of the other side: neither what an agent in a box is told, nor what its client is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.clients.sample_answers import EVERYTHING
from support.gateway_process import GatewayProcess, Start
from support.rpc_peer import RpcFailure
from support.sandboxes.sandbox_kinds import Kind


async def open_session(dragoman: Start, kind: Kind, project: Path) -> tuple[GatewayProcess, str]:
    gateway = await dragoman("acp", "scripted", **kind.config())
    await gateway.initialize(clientCapabilities=EVERYTHING)
    return gateway, await gateway.new_session(project)


@pytest.mark.rule("G-151")
async def test_an_error_about_a_file_names_the_path_that_the_agent_asked_for(
    dragoman: Start, kind: Kind, project: Path
) -> None:
    if kind.name == "ssh":
        pytest.skip("no files are served there")
    gateway, session = await open_session(dragoman, kind, project)
    (project / "binary").write_bytes(b"\xff\xfe\x00")
    paths = ["missing file.txt", "missing/deep/a", "src", "binary", "src/a.txt/below"]
    for path in paths:
        asked = f"{kind.inside}/{path}"
        turn = await gateway.prompt(session, f"fsread {asked}\nfswrite {asked}/below/x x")
        read, written = turn.report("fsread"), turn.report("fswrite")
        assert asked in read["error"]["message"] or path == "binary", read
        assert str(project) not in json.dumps([read, written])
        assert project.name.replace(" ", "%20") not in json.dumps([read, written])
    missing = (await gateway.prompt(session, f"fsread {kind.inside}/missing file.txt")).report("fsread")[
        "error"
    ]
    assert missing["message"] == f"File not found: {kind.inside}/missing file.txt"
    assert missing["data"] == {"uri": f"file://{kind.inside}/missing%20file.txt"}


@pytest.mark.rule("G-151")
async def test_an_error_about_a_terminal_names_no_path_of_this_machine(
    dragoman: Start, kind: Kind, project: Path
) -> None:
    gateway, session = await open_session(dragoman, kind, project)
    for cwd in (f"{kind.inside}/missing", f"{kind.inside}/src/a.txt", f"{kind.inside}/.."):
        asked = json.dumps({"sessionId": "{sid}", "command": "pwd", "cwd": cwd})
        answer = (await gateway.prompt(session, f"request terminal/create {asked}")).report("request")
        assert cwd in answer["error"]["message"], answer
        assert str(project) not in json.dumps(answer)


@pytest.mark.rule("G-151")
async def test_the_clients_error_reaches_the_agent_with_paths_of_the_box(
    dragoman: Start, bubblewrap: Kind, project: Path
) -> None:
    gateway, session = await open_session(dragoman, bubblewrap, project)
    uri = f"file://{str(project).replace(' ', '%20')}/a"

    def refuse(params: dict[str, Any]) -> None:
        raise RpcFailure(-32000, f"cannot open {project}/a: busy", {"uri": uri, "in": [str(project)]})

    gateway.on("_editor/open", refuse)
    told = (await gateway.prompt(session, 'request _editor/open {"sessionId":"{sid}"}')).report("request")[
        "error"
    ]
    inside = bubblewrap.inside
    assert told["message"] == f"cannot open {inside}/a: busy"
    assert told["data"] == {"uri": f"file://{inside}/a", "in": [inside]}


@pytest.mark.rule("G-151")
async def test_a_form_is_asked_and_answered_with_each_sides_own_paths(
    dragoman: Start, bubblewrap: Kind, project: Path
) -> None:
    gateway, session = await open_session(dragoman, bubblewrap, project)
    gateway.on("elicitation/create", {"action": "accept", "content": {"file": f"{project}/src/a.txt"}})
    choice = {"type": "string", "enum": [f"{bubblewrap.inside}/src/a.txt", f"{bubblewrap.inside}/b"]}
    schema = {"type": "object", "properties": {"file": choice}}
    turn = await gateway.prompt(session, f"elicit {json.dumps({'requestedSchema': schema})}")
    asked = (await gateway.next_message("elicitation/create"))["params"]["requestedSchema"]["properties"][
        "file"
    ]
    assert asked["enum"] == [f"{project}/src/a.txt", f"{project}/b"]
    assert turn.report("elicit")["result"]["content"] == {"file": f"{bubblewrap.inside}/src/a.txt"}


@pytest.mark.rule("G-151")
async def test_an_agents_error_reaches_the_client_with_its_own_paths(
    dragoman: Start, kind: Kind, project: Path
) -> None:
    gateway, session = await open_session(dragoman, kind, project)
    turn = await gateway.start_prompt(
        session, f"error -32050 cannot read {kind.inside}/src/a b.txt, nor file:{kind.inside}"
    )
    assert turn.error is not None
    spelled = str(project).replace(" ", "%20")
    assert turn.error.message == f"cannot read {project}/src/a b.txt, nor file:{spelled}"
    assert turn.error.data["big"] == 2**60


async def test_an_agents_last_words_reach_the_client_with_its_own_paths(
    dragoman: Start, bubblewrap: Kind, project: Path
) -> None:
    gateway, session = await open_session(dragoman, bubblewrap, project)
    words = f"Error: {bubblewrap.inside}/src/a.txt is broken"
    turn = await gateway.start_prompt(session, f"sh echo '{words}' >/proc/$PPID/fd/2\ncrash 3")
    assert turn.error is not None
    assert f"Error: {project}/src/a.txt is broken" in turn.error.message
    assert f"Error: {project}/src/a.txt is broken" in turn.error.data["stderrTail"]
