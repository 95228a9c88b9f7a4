"""What observers, controllers and admins may do, over every front, and how a token that is revoked ends."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from dragoman.server.auth.named_tokens import TokenFile
from support.clients.streamable_client import StreamableClient
from support.gateway_process import Start
from support.rpc_peer import RpcFailure
from support.serve_process import Refused, ServeProcess, Socket

FORBIDDEN = -32003
TOO_MANY = -32029


@pytest.fixture
def tokens(home: Path) -> TokenFile:
    return TokenFile(home / "tokens.json")


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


async def socket_of(serving: ServeProcess, tokens: TokenFile, role: str, **options: object) -> Socket:
    _, secret = tokens.create(f"a-{role}", role, **options)  # type: ignore[arg-type]
    socket = await serving.socket(headers=bearer(secret))
    await socket.initialize()
    return socket


async def test_an_observer_reads_along_and_changes_nothing(
    serving: ServeProcess, tokens: TokenFile, workspace: Path
) -> None:
    owner = await serving.socket()
    await owner.initialize()
    session = await owner.new_session(workspace)
    await owner.prompt(session, "first")
    observer = await socket_of(serving, tokens, "observe")
    listed = await observer.request("session/list", {})
    assert [each["sessionId"] for each in listed["sessions"]] == [session]
    load = {"sessionId": session, "cwd": str(workspace), "mcpServers": []}
    await observer.request("session/load", load)
    await observer.text(session, "first")
    for method, params in (
        ("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": "mine"}]}),
        ("session/new", {"cwd": str(workspace), "mcpServers": []}),
        ("session/fork", {"sessionId": session, "cwd": str(workspace)}),
        ("session/close", {"sessionId": session}),
        ("session/delete", {"sessionId": session}),
        ("session/set_mode", {"sessionId": session, "modeId": "x"}),
        ("session/cancel", {"sessionId": session}),
        ("_future/method", {"sessionId": session}),
        ("authenticate", {"methodId": "x"}),
    ):
        with pytest.raises(RpcFailure) as refused:
            await observer.request(method, params)
        assert refused.value.code == FORBIDDEN
        assert refused.value.data == {
            "reason": "role", "token": "a-observe", "role": "observe", "needed": "control",
        }  # fmt: skip
        assert method in refused.value.message
    turn = owner.start_prompt(session, "say begun\nsleep-until-cancel")
    await observer.text(session, "begun")
    observer.notify("session/cancel", {"sessionId": session})
    await observer.request("session/list", {})  # so the cancel was read
    (info,) = (await owner.request("session/list", {}))["sessions"]
    assert info["_meta"]["dragoman"]["pending"]  # the turn goes on
    owner.cancel(session)
    assert (await turn).stop_reason == "cancelled"


async def test_an_observer_is_not_asked_and_its_leaving_ends_nothing(
    serving: ServeProcess, tokens: TokenFile, workspace: Path
) -> None:
    owner = await serving.socket()
    await owner.initialize()
    session = await owner.new_session(workspace)
    observer = await socket_of(serving, tokens, "observe")
    await observer.request("session/resume", {"sessionId": session, "cwd": str(workspace)})
    turn = owner.start_prompt(session, "permission")
    question = await owner.next_message("session/request_permission")
    await observer.request("session/list", {})
    assert not [each for each in observer.received if each.get("method") == "session/request_permission"]
    await observer.close()
    option = question["params"]["options"][0]["optionId"]
    owner.reply(question, {"outcome": {"outcome": "selected", "optionId": option}})
    assert (await turn).stop_reason == "end_turn"
    assert (await owner.prompt(session, "still here")).texts == ["still here"]


async def test_an_approver_answers_questions_and_does_nothing_else(
    serving: ServeProcess, tokens: TokenFile, workspace: Path
) -> None:
    owner = await serving.socket()
    await owner.initialize()
    session = await owner.new_session(workspace)
    approver = await socket_of(serving, tokens, "approve")
    await approver.request("session/load", {"sessionId": session, "cwd": str(workspace), "mcpServers": []})
    turn = owner.start_prompt(session, "permission")
    question = await approver.next_message("session/request_permission")
    option = question["params"]["options"][0]["optionId"]
    approver.reply(question, {"outcome": {"outcome": "selected", "optionId": option}})
    assert (await turn).stop_reason == "end_turn"
    for method in ("session/prompt", "session/cancel", "session/close", "session/delete", "session/set_mode"):
        with pytest.raises(RpcFailure) as refused:
            await approver.request(method, {"sessionId": session, "modeId": "x", "prompt": []})
        assert (refused.value.code, refused.value.data["needed"]) == (FORBIDDEN, "control")
    await approver.close()
    assert (await owner.prompt(session, "still here")).texts == ["still here"]


async def test_an_approver_is_not_asked_for_files(
    serving: ServeProcess, tokens: TokenFile, workspace: Path
) -> None:
    files = {"fs": {"readTextFile": True, "writeTextFile": True}}
    owner = await serving.socket()
    await owner.initialize()
    session = await owner.new_session(workspace)
    _, secret = tokens.create("approver", "approve")
    approver = await serving.socket(headers=bearer(secret))
    await approver.request("initialize", {"protocolVersion": 1, "clientCapabilities": files})
    await approver.request("session/load", {"sessionId": session, "cwd": str(workspace), "mcpServers": []})
    await owner.prompt(session, f"fsread {workspace / 'notes.txt'}")
    await approver.request("session/list", {})
    assert not [each for each in approver.received if str(each.get("method", "")).startswith("fs/")]


async def test_an_approver_answers_by_rest_and_may_not_prompt_there(
    serving: ServeProcess, tokens: TokenFile, workspace: Path
) -> None:
    owner = await serving.socket()
    await owner.initialize()
    session = await owner.new_session(workspace)
    turn = owner.start_prompt(session, "permission")
    await owner.next_message("session/request_permission")
    for role, code in (("observe", 403), ("approve", 200)):
        _, secret = tokens.create(f"rest-{role}", role)
        rest = serving.http()
        rest.headers.update(bearer(secret))
        place = f"/api/sessions/{session}"
        question = (await rest.get(place)).json()["question"]
        answer = await rest.post(f"{place}/questions/{question['id']}", json={"optionId": "yes"})
        assert answer.status_code == code
        assert (await rest.post(f"{place}/prompt", json={"prompt": "x"})).status_code == 403
    assert (await turn).stop_reason == "end_turn"


async def test_an_observer_starts_no_agent(serving: ServeProcess, tokens: TokenFile, workspace: Path) -> None:
    owner = await serving.socket()
    await owner.initialize()
    session = await owner.new_session(workspace)
    await owner.prompt(session, "kept")
    await owner.request("session/close", {"sessionId": session})
    observer = await socket_of(serving, tokens, "observe")
    load = {"sessionId": session, "cwd": "/", "mcpServers": [{"name": "x", "command": "/bin/false"}]}
    loaded = await observer.request("session/load", load)
    await observer.text(session, "kept")
    assert loaded["_meta"]["dragoman"] == {"revived": None, "state": "parked"}
    await owner.request("session/load", {"sessionId": session, "cwd": str(workspace), "mcpServers": []})
    assert (await owner.prompt(session, "again")).texts == ["again"]
    await observer.text(session, "again")


async def test_an_observer_goes_on_when_an_editors_own_process_is_killed(
    serving: ServeProcess, tokens: TokenFile, dragoman: Start, workspace: Path
) -> None:
    editor = await dragoman("acp", "scripted", "--connect", "never")
    await editor.initialize()
    session = await editor.new_session(workspace)
    observer = await socket_of(serving, tokens, "observe")
    await observer.request("session/load", {"sessionId": session, "cwd": str(workspace), "mcpServers": []})
    turn = editor.start_prompt(session, "say begun\nsleep-until-cancel")
    await editor.text(session, "begun")
    await editor.kill()
    await observer.text(session, "begun")
    with pytest.raises(ConnectionError):
        await turn
    controller = await socket_of(serving, tokens, "control")
    await controller.request("session/load", {"sessionId": session, "cwd": str(workspace), "mcpServers": []})
    await controller.prompt(session, "say on")
    await observer.text(session, "on")


async def test_an_observers_post_is_403_and_another_tokens_connection_is_unknown(
    serving: ServeProcess, tokens: TokenFile, workspace: Path
) -> None:
    _, secret = tokens.create("watcher", "observe")
    watcher = StreamableClient(serving.http())
    watcher.client.headers.update(bearer(secret))
    await watcher.initialize()
    refused = await watcher.post({"id": 5, "method": "session/new", "params": {"cwd": str(workspace)}})
    assert refused.status_code == 403
    assert "role control" in refused.json()["error"] and "watcher" in refused.json()["error"]
    owner = StreamableClient(serving.http())
    await owner.initialize()
    watcher.connection = owner.connection  # guessed, or seen somewhere
    listed = await watcher.post({"id": 6, "method": "session/list", "params": {}})
    assert listed.status_code == 404


async def test_a_client_id_of_another_token_is_another_client(
    serving: ServeProcess, tokens: TokenFile
) -> None:
    _, secret = tokens.create("watcher", "observe")
    first = await serving.http().post("/acp/rpc?client_id=same", json=_initialize(1))
    other = serving.http()
    other.headers.update(bearer(secret))
    second = await other.post("/acp/rpc?client_id=same", json=_initialize(1))
    assert (first.status_code, second.status_code) == (202, 202)
    async with other.stream("GET", "/acp/sse?client_id=same") as stream:
        async for line in stream.aiter_lines():
            if line.startswith("data:"):
                assert '"error"' not in line  # not "already initialized"
                break


def _initialize(id: int) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": id, "method": "initialize", "params": {"protocolVersion": 1}}


async def test_a_revoked_tokens_sockets_and_streams_are_closed_and_the_others_stay(
    serving: ServeProcess, tokens: TokenFile, workspace: Path
) -> None:
    stays = await serving.socket()
    await stays.initialize()
    _, secret = tokens.create("leaver", "control")
    socket = await serving.socket(headers=bearer(secret))
    await socket.initialize()
    http = StreamableClient(serving.http())
    http.client.headers.update(bearer(secret))
    await http.initialize()
    stream = await http.listen()
    page = await serving.socket("/bridge", headers=bearer(secret))
    began = time.monotonic()
    tokens.revoke("leaver")
    assert (await http.post({"id": 1, "method": "session/list"})).status_code == 401
    assert await socket.closed() == 1008
    assert await page.closed() == 1008
    assert stream.task is not None
    async with asyncio.timeout(20):
        await stream.task
    assert time.monotonic() - began < 10
    with pytest.raises(Refused) as refused:
        await serving.socket(headers=bearer(secret))
    assert refused.value.status == 401
    session = await stays.new_session(workspace)
    assert (await stays.prompt(session, "fine")).texts == ["fine"]
    await http.close()


async def test_quotas_are_answered_429_and_with_a_time_to_wait(
    serving: ServeProcess, tokens: TokenFile, workspace: Path
) -> None:
    limited = await socket_of(
        serving, tokens, "control", quotas={"requests_per_minute": 12, "sessions": 1, "turns": 1}
    )
    session = await limited.new_session(workspace)
    with pytest.raises(RpcFailure) as refused:
        await limited.new_session(workspace)
    assert refused.value.code == TOO_MANY
    assert (refused.value.data["limit"], refused.value.data["retryAfter"]) == ("sessions", 60)
    turn = limited.start_prompt(session, "say begun\nsleep-until-cancel")
    await limited.text(session, "begun")
    with pytest.raises(RpcFailure) as refused:
        await limited.request(
            "session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": "x"}]}
        )
    assert (refused.value.code, refused.value.data["limit"]) == (TOO_MANY, "turns")
    codes = []
    for _ in range(12):
        try:
            await limited.request("session/list", {})
        except RpcFailure as failure:
            codes.append((failure.code, failure.data["limit"]))
            assert failure.data["retryAfter"] >= 1
    assert codes and set(codes) == {(TOO_MANY, "requests_per_minute")}
    limited.cancel(session)  # ending something is never too much
    assert (await turn).stop_reason == "cancelled"


async def test_too_many_http_requests_are_429_for_that_token_only(
    serving: ServeProcess, tokens: TokenFile
) -> None:
    _, secret = tokens.create("busy", "control", quotas={"requests_per_minute": 2})
    busy = serving.http()
    busy.headers.update(bearer(secret))
    assert [(await busy.get("/readyz")).status_code for _ in range(3)] == [200, 200, 429]
    answer = await busy.get("/readyz")
    assert 1 <= int(answer.headers["retry-after"]) <= 30
    with pytest.raises(Refused) as refused:
        await serving.socket(headers=bearer(secret))
    assert refused.value.status == 429 and "retry-after" in refused.value.headers
    assert (await serving.http().get("/readyz")).status_code == 200
