"""What an agent asks of its client: files, terminals, elicitation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.agents.agent_log import AgentLog
from support.clients.sample_answers import EVERYTHING
from support.gateway_process import GatewayProcess, Start, agent
from support.rpc_peer import Message, RpcFailure, is_request


@pytest.fixture
async def editor(dragoman: Start) -> GatewayProcess:
    """A client that can do all."""
    gateway = await dragoman()
    await gateway.initialize(clientCapabilities=EVERYTHING)
    return gateway


@pytest.mark.rule("G-063", "G-043")
async def test_a_file_is_read_by_the_client(editor: GatewayProcess, workspace: Path) -> None:
    editor.on("fs/read_text_file", {"content": "from the editor"})
    session = await editor.new_session(workspace)
    turn = await editor.prompt(session, f"fsread {workspace}/a.txt")
    asked = await editor.next_message("fs/read_text_file")
    assert asked["params"] == {"sessionId": session, "path": f"{workspace}/a.txt"}
    assert turn.report("fsread") == {"result": {"content": "from the editor"}}


@pytest.mark.rule("G-063")
@pytest.mark.parametrize("answer", [{}, None], ids=["object", "null"])
async def test_a_file_is_written_by_the_client(editor: GatewayProcess, workspace: Path, answer: Any) -> None:
    editor.on("fs/write_text_file", lambda params: answer)
    session = await editor.new_session(workspace)
    turn = await editor.prompt(session, f"fswrite {workspace}/a.txt new text")
    asked = await editor.next_message("fs/write_text_file")
    wanted = {"sessionId": session, "path": f"{workspace}/a.txt", "content": "new text"}
    assert asked["params"] == wanted
    assert turn.report("fswrite") == {"result": {}}


@pytest.mark.rule("G-063", "G-020")
async def test_the_clients_refusal_reaches_the_agent_unchanged(
    editor: GatewayProcess, workspace: Path
) -> None:
    def missing(params: Any) -> None:
        raise RpcFailure(-32002, "Resource not found", {"uri": "file:///nowhere"})

    editor.on("fs/read_text_file", missing)
    turn = await editor.prompt(await editor.new_session(workspace), f"fsread {workspace}/no")
    error = {"code": -32002, "message": "Resource not found", "data": {"uri": "file:///nowhere"}}
    assert turn.report("fsread") == {"error": error}


HIDDEN_PATHS = ["", "a.txt", "./a", "../a", "/a/../b", "/a/..", "/..", "C:\\a\\..\\b", "/a\0b", None, 7]


@pytest.mark.rule("G-063", "G-064")
@pytest.mark.parametrize("path", HIDDEN_PATHS, ids=repr)
async def test_a_path_that_hides_where_it_leads_is_refused_before_a_client_sees_it(
    editor: GatewayProcess, workspace: Path, path: Any
) -> None:
    asked = [
        ("fs/read_text_file", {"path": path}),
        ("fs/write_text_file", {"path": path, "content": "x"}),
        ("terminal/create", {"command": "true", "cwd": path}),
    ]
    if path is None:  # then a command runs in the session's folder
        del asked[2]
    script = [f"request {method} {json.dumps({'sessionId': '{sid}', **params})}" for method, params in asked]
    turn = await editor.prompt(await editor.new_session(workspace), "\n".join(script))
    assert [each["error"]["code"] for each in turn.reports("request")] == [-32602] * len(asked)
    for method, _ in asked:
        assert not [m for m in editor.received if m.get("method") == method]


NAMELESS: tuple[Message, ...] = ({}, {"sessionId": None}, {"sessionId": 5})
SESSIONS_OWN: dict[str, Message] = {
    "fs/read_text_file": {"path": "/etc/hostname"},
    "fs/write_text_file": {"path": "/etc/hostname", "content": "x"},
    "terminal/create": {"command": "id"},
    "session/request_permission": {"toolCall": {"toolCallId": "t"}, "options": []},
}


@pytest.mark.parametrize("method", SESSIONS_OWN)
async def test_what_is_asked_in_the_name_of_no_session_does_not_reach_the_client(
    editor: GatewayProcess, workspace: Path, method: str
) -> None:
    editor.on(method, {})
    session = await editor.new_session(workspace)
    asked = [json.dumps({**SESSIONS_OWN[method], **nameless}) for nameless in NAMELESS]
    turn = await editor.prompt(session, "\n".join(f"request {method} {params}" for params in asked))
    errors = [answer["error"] for answer in turn.reports("request")]
    assert [(error["code"], error["data"]["reason"]) for error in errors] == [(-32602, "sessionId")] * 3
    assert not [message for message in editor.received if message.get("method") == method]


async def test_dots_that_are_part_of_a_name_are_no_way_up(editor: GatewayProcess, workspace: Path) -> None:
    editor.on("fs/read_text_file", {"content": "here"})
    turn = await editor.prompt(await editor.new_session(workspace), "fsread /a/..b/c../...")
    assert turn.report("fsread") == {"result": {"content": "here"}}


UNADVERTISED = [
    ("fsread /a", "fsread", "fs/read_text_file"),
    ("fswrite /a b", "fswrite", "fs/write_text_file"),
    ("terminal true", "terminal/create", "terminal/create"),
]


@pytest.mark.rule("G-037")
@pytest.mark.parametrize(("script", "report", "method"), UNADVERTISED, ids=[row[1] for row in UNADVERTISED])
async def test_what_the_client_cannot_do_is_refused_without_asking_it(
    client: GatewayProcess, workspace: Path, script: str, report: str, method: str
) -> None:
    turn = await client.prompt(await client.new_session(workspace), script)
    assert turn.report(report)["error"]["code"] == -32601
    assert not [m for m in client.received if m.get("method") == method]


@pytest.mark.rule("G-037", "G-065")
@pytest.mark.parametrize("caps", [{}, {"elicitation": {}}, {"elicitation": {"url": {}}}], ids=str)
async def test_an_elicitation_in_a_mode_that_was_not_offered_is_invalid(
    dragoman: Start, workspace: Path, caps: dict[str, Any]
) -> None:
    gateway = await dragoman()
    await gateway.initialize(clientCapabilities=caps)
    turn = await gateway.prompt(await gateway.new_session(workspace), "elicit")
    assert turn.report("elicit")["error"]["code"] in ((-32601, -32602) if not caps else (-32602,))
    assert not [m for m in gateway.received if m.get("method") == "elicitation/create"]


def serve_terminals(client: GatewayProcess) -> None:
    client.on("terminal/create", {"terminalId": "t1"})
    client.on("terminal/wait_for_exit", {"exitCode": None, "signal": "SIGTERM"})
    client.on("terminal/output", {"output": "out", "truncated": True, "exitStatus": None})
    client.on("terminal/release", {})
    client.on("terminal/kill", {})


@pytest.mark.rule("G-064", "G-043")
async def test_a_terminal_is_run_by_the_client(editor: GatewayProcess, workspace: Path) -> None:
    serve_terminals(editor)
    session = await editor.new_session(workspace)
    turn = await editor.prompt(session, "terminal make all /x/s1")
    assert turn.report("terminal/wait_for_exit") == {"result": {"exitCode": None, "signal": "SIGTERM"}}
    output = {"output": "out", "truncated": True, "exitStatus": None}
    assert turn.report("terminal/output") == {"result": output}
    assert turn.report("terminal/release") == {"result": {}}
    created = (await editor.next_message("terminal/create"))["params"]
    assert created == {"sessionId": session, "command": "make", "args": ["all", "/x/s1"]}
    for method in ("terminal/wait_for_exit", "terminal/output", "terminal/release"):
        params = (await editor.next_message(method))["params"]
        assert params == {"sessionId": session, "terminalId": "t1"}


@pytest.mark.rule("G-064")
async def test_a_terminal_can_be_killed(editor: GatewayProcess, workspace: Path) -> None:
    serve_terminals(editor)
    turn = await editor.prompt(await editor.new_session(workspace), "terminal-kill")
    assert turn.report("terminal/kill") == {"result": {}}
    assert (await editor.next_message("terminal/kill"))["params"]["terminalId"] == "t1"


@pytest.mark.rule("G-061", "G-064", "G-069")
async def test_a_terminal_inside_a_tool_call_has_the_clients_id(
    editor: GatewayProcess, workspace: Path
) -> None:
    serve_terminals(editor)
    turn = await editor.prompt(await editor.new_session(workspace), "terminal-keep")
    call = next(update for update in turn.updates if update["sessionUpdate"] == "tool_call")
    assert call["content"] == [{"type": "terminal", "terminalId": "t1"}]


@pytest.mark.rule("G-064")
async def test_terminals_that_the_agent_forgot_are_released_with_its_session(
    editor: GatewayProcess, workspace: Path
) -> None:
    serve_terminals(editor)
    session = await editor.new_session(workspace)
    await editor.prompt(session, "terminal-keep")
    await editor.request("session/close", {"sessionId": session})
    released = await editor.next_message(is_request("terminal/release"))
    assert released["params"] == {"sessionId": session, "terminalId": "t1"}


@pytest.mark.rule("G-065", "G-043")
@pytest.mark.parametrize(
    "answer",
    [
        {"action": "accept", "content": {"name": "Ada", "n": 2**60}},
        {"action": "decline"},
        {"action": "cancel"},
    ],
    ids=["accept", "decline", "cancel"],
)
async def test_an_elicitation_is_answered_by_the_client(
    editor: GatewayProcess, workspace: Path, answer: dict[str, Any]
) -> None:
    editor.on("elicitation/create", answer)
    session = await editor.new_session(workspace)
    turn = await editor.prompt(session, 'elicit {"toolCallId": "t", "x": null}')
    asked = (await editor.next_message("elicitation/create"))["params"]
    assert (asked["sessionId"], asked["toolCallId"], asked["x"]) == (session, "t", None)
    assert turn.report("elicit") == {"result": answer}


@pytest.mark.rule("G-065")
async def test_an_elicitation_for_a_request_names_the_clients_own_id(
    editor: GatewayProcess, workspace: Path
) -> None:
    editor.on("elicitation/create", {"action": "decline"})
    session = await editor.new_session(workspace)
    prompt = [{"type": "text", "text": "elicit-for-prompt"}]
    id = editor.start_request("session/prompt", {"sessionId": session, "prompt": prompt}, id="my prompt")
    asked = await editor.next_message("elicitation/create")
    assert asked["params"]["requestId"] == "my prompt"
    assert (await editor.response(id))["result"]["stopReason"] == "end_turn"


@pytest.mark.rule("G-065", "G-066")
async def test_a_completed_url_elicitation_is_told_with_the_same_id(
    editor: GatewayProcess, workspace: Path
) -> None:
    editor.on("elicitation/create", {"action": "accept"})
    session = await editor.new_session(workspace)
    url = json.dumps(
        {"mode": "url", "elicitationId": "e1", "url": "https://example.com", "requestedSchema": None}
    )
    await editor.prompt(session, f'elicit {url}\nnotify elicitation/complete {{"elicitationId":"e1"}}')
    asked = (await editor.next_message("elicitation/create"))["params"]
    told = (await editor.next_message("elicitation/complete"))["params"]
    assert told["elicitationId"] == asked["elicitationId"]


@pytest.mark.rule("G-066")
async def test_the_completion_of_an_unknown_elicitation_is_dropped(
    editor: GatewayProcess, workspace: Path
) -> None:
    session = await editor.new_session(workspace)
    known = len(editor.received)
    await editor.prompt(session, 'notify elicitation/complete {"elicitationId":"never"}\nsay done')
    assert len(editor.received) == known + 2


@pytest.mark.rule("G-037")
async def test_files_are_served_inside_the_workspace_when_configured(
    dragoman: Start, workspace: Path
) -> None:
    (workspace / "in.txt").write_text("one\ntwo\n")
    gateway = await dragoman(agents={"scripted": agent(serve_fs=True)})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    script = f"fsread {workspace}/in.txt\nfswrite {workspace}/out.txt made here"
    turn = await gateway.prompt(session, script)
    assert turn.report("fsread") == {"result": {"content": "one\ntwo\n"}}
    assert "result" in turn.report("fswrite")
    assert (workspace / "out.txt").read_text() == "made here"


@pytest.mark.rule("G-037", "G-063")
@pytest.mark.parametrize("path", ["../outside.txt", "link/outside.txt"])
async def test_files_outside_the_workspace_are_not_served(
    dragoman: Start, workspace: Path, path: str
) -> None:
    (workspace.parent / "outside.txt").write_text("secret")
    (workspace / "link").symlink_to(workspace.parent)
    gateway = await dragoman(agents={"scripted": agent(serve_fs=True)})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    turn = await gateway.prompt(session, f"fsread {workspace}/{path}\nfswrite {workspace}/{path} x")
    assert "error" in turn.report("fsread")
    assert "error" in turn.report("fswrite")
    assert (workspace.parent / "outside.txt").read_text() == "secret"


@pytest.mark.rule("G-037")
async def test_terminals_are_served_in_the_workspace_when_configured(
    dragoman: Start, workspace: Path
) -> None:
    gateway = await dragoman(agents={"scripted": agent(serve_terminal=True)})
    await gateway.initialize()
    turn = await gateway.prompt(await gateway.new_session(workspace), "terminal pwd")
    assert turn.report("terminal/wait_for_exit")["result"]["exitCode"] == 0
    assert turn.report("terminal/output")["result"]["output"].strip() == str(workspace)
    assert turn.report("terminal/release") == {"result": {}}


@pytest.mark.rule("G-032", "G-037")
async def test_the_agent_is_told_what_the_gateway_serves(
    dragoman: Start, workspace: Path, heard: AgentLog
) -> None:
    gateway = await dragoman(agents={"scripted": agent(*heard.flags, serve_fs=True, serve_terminal=True)})
    await gateway.initialize()
    await gateway.new_session(workspace)
    told = heard.params("initialize")[-1]["clientCapabilities"]
    assert told["fs"] == {"readTextFile": True, "writeTextFile": True}
    assert told["terminal"] is True


@pytest.mark.parametrize("answer", [[], "yes", {}, None], ids=str)
async def test_an_elicitation_answered_with_nonsense_is_cancelled(
    dragoman: Start, workspace: Path, answer: Any
) -> None:
    gateway = await dragoman()
    await gateway.initialize(clientCapabilities=EVERYTHING)
    gateway.on("elicitation/create", lambda params: answer)
    session = await gateway.new_session(workspace)
    assert (await gateway.prompt(session, "elicit")).report("elicit") == {"result": {"action": "cancel"}}
    assert (await gateway.prompt(session, "say on")).texts == ["on"]
