"""How messages are cut out of bytes."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from support.clients.sample_answers import ALLOW
from support.gateway_process import GatewayProcess, Start
from support.rpc_peer import HeaderFraming

HELLO = b'{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":1}}'


@pytest.mark.rule("G-140")
@pytest.mark.parametrize(
    "bytes_",
    [HELLO + b"\r\n", b"\n\r\n  \n" + HELLO + b"\n", b"\xef\xbb\xbf" + HELLO + b"\n"],
    ids=["CRLF", "blank lines", "BOM"],
)
async def test_lines_may_be_untidy(dragoman: Start, bytes_: bytes) -> None:
    gateway = await dragoman()
    gateway.send_bytes(bytes_)
    assert (await gateway.response("hello"))["result"]["protocolVersion"] == 1


@pytest.mark.rule("G-140")
async def test_a_message_may_come_byte_by_byte(dragoman: Start) -> None:
    gateway = await dragoman()
    for byte in HELLO + b"\n":
        gateway.send_bytes(bytes([byte]))
        await asyncio.sleep(0)
    assert (await gateway.response("hello"))["result"]["protocolVersion"] == 1


@pytest.mark.rule("G-140")
async def test_many_messages_may_come_in_one_write(client: GatewayProcess) -> None:
    lines = [
        json.dumps({"jsonrpc": "2.0", "id": f"n{n}", "method": "_echo", "params": {"n": n}})
        for n in range(500)
    ]
    client.send_bytes("\n".join(lines).encode() + b"\n")
    for number in range(500):
        assert (await client.response(f"n{number}"))["result"] == {"n": number}


@pytest.mark.rule("G-140", "G-004")
async def test_every_message_is_one_compact_line(client: GatewayProcess, workspace: Path) -> None:
    session = await client.new_session(workspace)
    await client.prompt(session, "say two\\nlines\nsay done")
    for raw in client.raw:
        assert b"\n" not in raw
        assert not raw.endswith(b"\r")


@pytest.mark.rule("G-144")
async def test_line_separators_of_unicode_do_not_split_a_message(
    client: GatewayProcess, workspace: Path
) -> None:
    text = "a\u2028b\u2029c\x85d\x0be\x0cf\x1c"
    session = await client.new_session(workspace)
    params = {"sessionId": session, "prompt": [{"type": "text", "text": f"say {text}"}]}
    message = {"jsonrpc": "2.0", "id": "p", "method": "session/prompt", "params": params}
    client.send(json.dumps(message, ensure_ascii=False).encode())
    await client.response("p")
    assert client.of(session)[0]["content"]["text"] == text


@pytest.mark.rule("G-141", "G-142")
async def test_a_client_with_headers_is_spoken_to_with_headers(dragoman: Start, workspace: Path) -> None:
    """The harness fails on anything that is not a header where one must be."""
    gateway = await dragoman(framing=HeaderFraming())
    gateway.on("session/request_permission", ALLOW)
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    turn = await gateway.prompt(session, "say ü 😀\npermission\nflood 100 3000")
    assert turn.texts[0] == "ü 😀"
    assert len(turn.texts) == 102
    assert turn.stop_reason == "end_turn"


@pytest.mark.rule("G-141", "G-142")
async def test_headers_may_be_written_in_any_way(dragoman: Start) -> None:
    gateway = await dragoman(framing=HeaderFraming())
    headers = b"content-length:%d\r\nContent-Type: application/vscode-jsonrpc; charset=utf-8\r\n\r\n" % len(
        HELLO
    )
    gateway.send_bytes(headers + HELLO)
    assert (await gateway.response("hello"))["result"]["protocolVersion"] == 1


@pytest.mark.rule("G-142")
async def test_the_length_counts_bytes(dragoman: Start) -> None:
    gateway = await dragoman(framing=HeaderFraming())
    await gateway.initialize()
    body = json.dumps(
        {"jsonrpc": "2.0", "id": "e", "method": "_echo", "params": {"t": "ü😀"}}, ensure_ascii=False
    ).encode()
    gateway.send(body)
    assert (await gateway.response("e"))["result"] == {"t": "ü😀"}
    assert await gateway.request("_echo", {"on": 1}) == {"on": 1}


@pytest.mark.rule("G-142")
@pytest.mark.parametrize(
    "header",
    [b"Content-Type: application/json\r\n\r\n", b"Content-Length: many\r\n\r\n"],
    ids=["missing", "no number"],
)
async def test_headers_without_a_length_are_a_parse_error_and_the_end(dragoman: Start, header: bytes) -> None:
    gateway = await dragoman(framing=HeaderFraming())
    gateway.send_bytes(header + HELLO)
    assert (await gateway.response(None))["error"]["code"] == -32700
    await gateway.ended()
    await gateway.wait_exit()


@pytest.mark.rule("G-143")
async def test_an_oversize_body_is_skipped_by_its_length(dragoman: Start) -> None:
    gateway: GatewayProcess = await dragoman(framing=HeaderFraming(), limits={"max_message_bytes": 10_000})
    await gateway.initialize()
    response = await gateway.request_raw("_echo", {"filler": "x" * 20_000}, id="big")
    assert response["error"]["code"] == -32600
    assert await gateway.request("_echo", {"on": 1}) == {"on": 1}
