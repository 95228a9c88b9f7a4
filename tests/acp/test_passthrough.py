"""What the gateway does not understand, it passes on as it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.agents.agent_log import AgentLog
from support.exact_json import exact
from support.gateway_process import GatewayProcess, Start, agent
from support.rpc_peer import Message

ODD = (
    '{"big":123456789012345678901234567890,"beyond":9007199254740993,"negative":-9223372036854775809,'
    '"float":1.0,"exp":1e2,"tiny":1.0000000000000000001,"null":null,"empty":{},"list":[],"string":"1",'
    '"true":true,"unicode":"\\u00fc\\u2028\\ud83d\\ude00 ü","escape":"\\u0000\\n\\"\\\\",'
    '"sessionId":"s1","nested":[[{"_meta":{"sessionId":"s1"},"terminalId":"t1"}]]}'
)


UPDATES = {
    "unknown kind": '{"sessionUpdate":"notice","severity":"info","title":"x","odd":ODD}',
    "private kind": '{"sessionUpdate":"_vendor/thing","odd":ODD}',
    "no kind": '{"odd":ODD}',
    "unknown fields": '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"x","odd":ODD},"odd":ODD}',
    "explicit null": '{"sessionUpdate":"session_info_update","title":null,"updatedAt":null,"_meta":null}',
    "meta": '{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"","_meta":ODD},"_meta":ODD}',
    "unknown content": '{"sessionUpdate":"agent_message_chunk","content":{"type":"hologram","data":ODD}}',
    "message id": '{"sessionUpdate":"agent_message_chunk","messageId":"s1","content":{"type":"text","text":"s1"}}',
    "tool call": (
        '{"sessionUpdate":"tool_call","toolCallId":"s1","title":"s1","kind":"read","status":"pending",'
        '"rawInput":ODD,"rawOutput":ODD,"locations":[{"path":"/a","line":3,"odd":ODD}],'
        '"content":[{"type":"diff","path":"/a","oldText":null,"newText":"","odd":ODD},{"type":"hologram"}]}'
    ),
    "usage": (
        '{"sessionUpdate":"usage_update","used":18446744073709551615,"size":1,'
        '"cost":{"amount":0.10,"currency":"EUR"}}'
    ),
    "compaction": '{"sessionUpdate":"compaction_update","compactionId":"c","status":"in_progress","error":null}',
    "commands": (
        '{"sessionUpdate":"available_commands_update",'
        '"availableCommands":[{"name":"s1","description":"","input":null,"odd":ODD}]}'
    ),
}


@pytest.mark.rule("G-001", "G-002", "G-043", "G-070")
@pytest.mark.parametrize("row", UPDATES)
async def test_an_update_arrives_as_it_was_sent(client: GatewayProcess, workspace: Path, row: str) -> None:
    update = UPDATES[row].replace("ODD", ODD)
    session = await client.new_session(workspace)
    script = 'raw {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"{sid}","update":%s,"_meta":%s}}'
    await client.prompt(session, script % (update, ODD))
    body = next(raw for raw in client.raw if b'"session/update"' in raw)
    params = exact(body)["params"]
    assert params == {"sessionId": session, "update": exact(update), "_meta": exact(ODD)}


@pytest.mark.rule("G-002", "G-003", "G-043")
async def test_a_prompt_reaches_the_agent_as_it_was_sent(
    dragoman: Start, workspace: Path, heard: AgentLog
) -> None:
    caps = json.dumps({"promptCapabilities": {"image": True, "audio": True, "embeddedContext": True}})
    gateway = await dragoman(agents={"scripted": agent("--caps", caps, *heard.flags)})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    prompt = (
        '[{"type":"text","text":"say x","_meta":null,"annotations":{"priority":0.50},"odd":ODD},'
        '{"type":"image","data":"AAAA","mimeType":"image/png","uri":null},'
        '{"type":"audio","data":"AAAA","mimeType":"audio/wav"},'
        '{"type":"resource","resource":{"uri":"file:///a%20b","text":"t","mimeType":null}},'
        '{"type":"resource_link","uri":"file:///a","name":"a","size":9007199254740993}]'
    ).replace("ODD", ODD)
    params = f'{{"sessionId":"{session}","prompt":{prompt},"_meta":{ODD},"x":null}}'
    gateway.send(f'{{"jsonrpc":"2.0","id":"p","method":"session/prompt","params":{params}}}'.encode())
    await gateway.response("p")
    (sent,) = [raw for raw in heard.lines if b'"session/prompt"' in raw]
    assert exact(sent)["params"] == {
        "sessionId": "s1",
        "prompt": exact(prompt),
        "_meta": exact(ODD),
        "x": None,
    }


@pytest.mark.rule("G-002", "G-019")
async def test_an_unknown_method_and_its_answer_pass_exactly(client: GatewayProcess) -> None:
    odd = ODD.replace('"sessionId":"s1",', "", 1)
    client.send(b'{"jsonrpc":"2.0","id":"e","method":"_echo","params":%s}' % odd.encode())
    await client.response("e")
    assert exact(client.raw[-1]) == {
        "jsonrpc": "2.0",
        "id": "e",
        "result": exact(json.dumps(json.loads(odd))),
    }


@pytest.mark.rule("G-002", "G-019")
async def test_an_unknown_method_reaches_the_agent_exactly(dragoman: Start, heard: AgentLog) -> None:
    gateway = await dragoman(agents={"scripted": agent(*heard.flags)})
    await gateway.initialize()
    odd = ODD.replace('"sessionId":"s1",', "", 1)
    gateway.send(b'{"jsonrpc":"2.0","id":"e","method":"future/method","params":%s}' % odd.encode())
    assert (await gateway.response("e"))["error"]["code"] == -32601
    (sent,) = [raw for raw in heard.lines if b'"future/method"' in raw]
    assert exact(sent)["params"] == exact(odd)


@pytest.mark.rule("G-019")
@pytest.mark.parametrize("params", ["[1,2]", "[]", "{}", "null"])
async def test_params_of_any_shape_pass(dragoman: Start, heard: AgentLog, params: str) -> None:
    gateway = await dragoman(agents={"scripted": agent(*heard.flags)})
    await gateway.initialize()
    gateway.send(b'{"jsonrpc":"2.0","id":"e","method":"_odd","params":%s}' % params.encode())
    await gateway.response("e")
    (sent,) = [raw for raw in heard.lines if b'"_odd"' in raw]
    assert exact(sent).get("params") == exact(params)


@pytest.mark.rule("G-002")
async def test_a_prompt_result_passes_with_all_it_carries(client: GatewayProcess, workspace: Path) -> None:
    result = (
        '{"stopReason":"end_turn","usage":{"totalTokens":9007199254740993,"x":null},"_meta":{"quota":[1.0]}}'
    )
    session = await client.new_session(workspace)
    turn = await client.prompt(session, f"result {result}")
    assert turn.response["result"] == json.loads(result)


@pytest.mark.rule("G-002", "G-003")
async def test_a_new_session_passes_what_it_does_not_know(
    dragoman: Start, workspace: Path, heard: AgentLog
) -> None:
    extra = {
        "systemPrompt": None,
        "_meta": {"vendor": {"n": 2**60}, "traceparent": "00-ab-cd-01"},
        "future": [None],
    }
    flags = ("--new-extra", json.dumps({"future": {"n": 2**60, "x": None}, "_meta": {"v": 1}}))
    gateway = await dragoman(agents={"scripted": agent(*flags, *heard.flags)})
    await gateway.initialize()
    params: dict[str, Any] = {"cwd": str(workspace), "mcpServers": [], **extra}
    answer = await gateway.request("session/new", params)
    sent = heard.params("session/new")[-1]
    assert {key: sent[key] for key in params} == params
    assert sent.keys() == params.keys()
    assert answer["future"] == {"n": 2**60, "x": None}
    assert answer["_meta"]["v"] == 1
    assert answer.keys() == {"sessionId", "future", "_meta"}


@pytest.mark.rule("G-003")
async def test_nothing_of_the_gateway_appears_outside_its_meta_key(
    client: GatewayProcess, workspace: Path
) -> None:
    session = await client.new_session(workspace)
    turn = await client.prompt(session, "say x\ntool t")
    assert turn.response.keys() == {"jsonrpc", "id", "result"}
    assert turn.response["result"].keys() <= {"stopReason", "_meta"}
    for message in client.received:
        if message.get("method") == "session/update":
            assert message["params"].keys() <= {"sessionId", "update", "_meta"}
            assert set(message["params"].get("_meta", {})) <= {"dragoman"}
    assert turn.updates[0] == {
        "sessionUpdate": "agent_message_chunk",
        "content": {"type": "text", "text": "x"},
    }


@pytest.mark.rule("G-002", "G-043")
async def test_session_ids_in_text_and_raw_data_are_left_alone(
    client: GatewayProcess, workspace: Path
) -> None:
    session = await client.new_session(workspace)
    turn = await client.prompt(
        session,
        f'say s1 and {session}\nupdate {{"sessionUpdate":"_x","sessionId":"s1","_meta":{{"sessionId":"s1"}}}}',
    )
    assert turn.updates[0]["content"]["text"] == f"s1 and {session}"
    assert turn.updates[1]["_meta"] == {"sessionId": "s1"}


@pytest.mark.rule("G-043")
@pytest.mark.parametrize(
    "params",
    [
        '{"sessionId":"{sid}","update":UPDATE,"sessionId":"{sid}"}',
        '{"sessionId":"{sid}","update":UPDATE,"sessi\\u006fnId":"{sid}"}',
        '{"sessionId":"elsewhere","update":UPDATE,"sessionId":"{sid}"}',
        '{"sessionId":"elsewhere","sessionId":"{sid}","update":UPDATE}',
        '{"sessionId":"{sid}","update":UPDATE},"params":{"sessionId":"{sid}","update":UPDATE}',
    ],
)
@pytest.mark.parametrize("update", ["agent_message_chunk", "tool_call"])
async def test_an_update_names_one_session(
    client: GatewayProcess, workspace: Path, params: str, update: str
) -> None:
    """A client that prefers the first of two members, or the last, sees the same session."""
    told = {"sessionUpdate": update, "toolCallId": "t", "content": {"type": "text", "text": "smuggled"}}
    if update == "tool_call":
        told["content"], told["title"] = [], "smuggled"
    session = await client.new_session(workspace)
    script = 'raw {"jsonrpc":"2.0","method":"session/update","params":%s}'
    await client.prompt(session, script % params.replace("UPDATE", json.dumps(told)))
    body = next(raw for raw in client.raw if b"smuggled" in raw and b'"session/update"' in raw)
    names: list[str] = []

    def note(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names.extend(name for name, _ in pairs)
        return dict(pairs)

    json.loads(body, object_pairs_hook=note)
    assert (names.count("sessionId"), names.count("params")) == (1, 1)
    assert b'"sessionId":"%b"' % session.encode() in body


async def test_a_request_for_the_agent_names_one_session(
    dragoman: Start, workspace: Path, heard: AgentLog
) -> None:
    gateway = await dragoman(agents={"scripted": agent(*heard.flags)})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    for number, method in enumerate(("session/prompt", "_vendor/ask")):
        twice = f'"sessionId":"s2","sessi\\u006fnId":"s3","sessionId":"{session}"'
        params = f'{{{twice},"prompt":[{{"type":"text","text":"hi"}}]}}'
        line = f'{{"jsonrpc":"2.0","id":"n{number}","method":"{method}","params":{params}}}\n'
        gateway.send_bytes(line.encode())

        def answers(message: Message, id: str = f"n{number}") -> bool:
            return bool(message.get("id") == id)

        await gateway.next_message(answers)
    text = heard.path.read_text()
    assert '"s2"' not in text
    assert '"s3"' not in text
