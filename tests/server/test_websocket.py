"""ACP over WebSocket at `/acp`."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from support.agents.agent_log import AgentLog
from support.gateway_process import agent
from support.rpc_peer import is_request
from support.serve_process import Refused, ServeProcess, Socket

from .conftest import Serve

pytestmark = pytest.mark.rule("G-128")


async def connected(serving: ServeProcess, path: str = "/acp", **params: object) -> Socket:
    socket = await serving.socket(path)
    await socket.initialize(**params)
    return socket


async def test_a_whole_conversation_with_a_question_and_a_cancel(
    serving: ServeProcess, workspace: Path
) -> None:
    socket = await connected(serving)
    assert len(socket.handshake["acp-connection-id"]) >= 20
    session = await socket.new_session(workspace)
    assert (await socket.prompt(session, "one\ntwo")).texts == ["one", "two"]
    turn = socket.start_prompt(session, "permission")
    question = await socket.next_message(is_request("session/request_permission"))
    option = question["params"]["options"][0]["optionId"]
    socket.reply(question, {"outcome": {"outcome": "selected", "optionId": option}})
    assert (await turn).stop_reason == "end_turn"
    turn = socket.start_prompt(session, "say here\nsleep-until-cancel")
    await socket.text(session, "here")
    socket.cancel(session)
    assert (await turn).stop_reason == "cancelled"


async def test_a_path_fixes_the_agent(serve: Serve, workspace: Path) -> None:
    serving = await serve(agents={"one": agent("--version", "1.1"), "two": agent("--version", "2.2")})
    socket = await connected(serving, "/acp/two")
    session = await socket.new_session(workspace)
    assert session.startswith("dgm_")
    for path in ("/acp/nobody", "/acp/rpc", "/acp/", "/", "/acp/two/three"):
        with pytest.raises(Refused) as refused:
            await serving.socket(path)
        assert refused.value.status == 404, path


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Host": "evil.example", "Authorization": "TOKEN"}, 403),
        ({"Origin": "http://evil.example", "Authorization": "TOKEN"}, 403),
        ({"Origin": "null", "Authorization": "TOKEN"}, 403),
        ({"Sec-WebSocket-Version": "8", "Authorization": "TOKEN"}, 426),
    ],
)
async def test_strangers_are_refused_before_the_upgrade(
    serving: ServeProcess, headers: dict[str, str], status: int
) -> None:
    sent = {name: value.replace("TOKEN", serving.bearer["Authorization"]) for name, value in headers.items()}
    with pytest.raises(Refused) as refused:
        await serving.socket(headers=sent)
    assert refused.value.status == status


async def test_the_token_may_be_in_the_address(serving: ServeProcess) -> None:
    socket = await serving.socket(f"/acp?token={serving.token}", headers={})
    await socket.initialize()


async def test_whoever_does_not_begin_with_initialize_is_closed_with_1002(serving: ServeProcess) -> None:
    socket = await serving.socket()
    socket.start_request("session/list", {})
    assert await socket.closed() == 1002


async def test_what_is_not_json_is_answered_and_binary_is_ignored(serving: ServeProcess) -> None:
    socket = await serving.socket()
    socket.send(b"{nonsense")
    answer = await socket.next_message(lambda message: "error" in message)
    assert (answer["id"], answer["error"]["code"]) == (None, -32700)
    socket.send_bytes(socket.framing.frame(b"\x00\x01", opcode=2))
    await socket.initialize()
    socket.send(b"[1")
    answer = await socket.next_message(lambda message: "error" in message)
    assert answer["error"]["code"] == -32700
    assert await socket.request("session/list", {})


async def test_a_second_initialize_is_refused(serving: ServeProcess) -> None:
    socket = await connected(serving)
    answer = await socket.request_raw("initialize", {"protocolVersion": 1})
    assert answer["error"]["code"] == -32600


async def test_fragments_and_pretty_json_are_one_message(serving: ServeProcess) -> None:
    socket = await serving.socket()
    whole = b'{\n "jsonrpc": "2.0", "id": 1,\r\n "method": "initialize", "params": {"protocolVersion": 1}\n}'
    frame = socket.framing.frame
    socket.send_bytes(frame(whole[:9], fin=False) + frame(b"", opcode=9))
    socket.send_bytes(frame(whole[9:30], opcode=0, fin=False) + frame(whole[30:], opcode=0))
    assert "result" in await socket.response(1)


async def test_an_oversize_message_is_refused_and_the_connection_goes_on(serve: Serve) -> None:
    serving = await serve(limits={"max_message_bytes": 2048})
    socket = await connected(serving)
    long = b'{"jsonrpc":"2.0","id":77,"method":"session/list","params":{"x":"%b"}}' % (b"y" * 100_000)
    socket.send(long)
    answer = await socket.response(77)
    assert answer["error"]["code"] == -32600
    assert "sessions" in await socket.request("session/list", {})


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        (b"\x81\x82\x00\x00\x00\x00\xff\xfe", 1007),  # not UTF-8
        (b"\x81\x02hi", 1002),  # not masked
        (b"\xc1\x82\x00\x00\x00\x00hi", 1002),  # compressed, which was not agreed
        (b"\x83\x80\x00\x00\x00\x00", 1002),  # an opcode that does not exist
    ],
)
async def test_broken_frames_end_the_connection_with_a_code(
    serving: ServeProcess, frame: bytes, code: int
) -> None:
    socket = await connected(serving)
    socket.send_bytes(frame)
    assert await socket.closed() == code


async def test_a_turn_goes_on_without_its_client_who_gets_what_was_missed(
    serving: ServeProcess, workspace: Path
) -> None:
    seq = {"_meta": {"dragoman": {"seq": True}}}
    first = await connected(serving, clientCapabilities=seq)
    session = await first.new_session(workspace)
    turn = asyncio.ensure_future(first.start_prompt(session, "say early\npermission\nsay late"))
    early = await first.text(session, "early")
    await first.next_message(is_request("session/request_permission"))
    after = early["params"]["_meta"]["dragoman"]["seq"]
    turn.cancel()
    await first.close()

    second = await connected(serving, clientCapabilities=seq)
    await second.request(
        "session/resume",
        {"sessionId": session, "cwd": str(workspace), "_meta": {"dragoman": {"afterSeq": after}}},
    )
    question = await second.next_message(is_request("session/request_permission"))
    option = question["params"]["options"][0]["optionId"]
    second.reply(question, {"outcome": {"outcome": "selected", "optionId": option}})
    late = await second.text(session, "late")
    assert late["params"]["_meta"]["dragoman"]["seq"] > after
    assert not [
        each for each in second.of(session) if each.get("content") == {"type": "text", "text": "early"}
    ]


async def test_ten_thousand_updates_arrive_in_order(serving: ServeProcess, workspace: Path) -> None:
    socket = await connected(serving)
    session = await socket.new_session(workspace)
    turn = await socket.prompt(session, "flood 10000 120")
    assert len(turn.updates) == 10000


async def test_clients_that_only_look_cost_no_agent_each(
    serve: Serve, heard: AgentLog, workspace: Path
) -> None:
    serving = await serve(agents={"scripted": agent(*heard.flags)})
    sockets = [await serving.socket() for _ in range(12)]
    await asyncio.gather(*(socket.initialize() for socket in sockets))
    assert heard.methods.count("initialize") == 1  # one was asked, for all of them
    session = await sockets[0].new_session(workspace)
    assert (await sockets[0].prompt(session, "here")).texts == ["here"]
    assert heard.methods.count("initialize") == 2
