"""What `serve` records, and the audit by REST."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Awaitable, Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import pytest

from dragoman.server.auth.named_tokens import TokenFile
from server.conftest import Serve
from support.certificates import make_certificate
from support.rpc_peer import PATIENCE
from support.serve_process import ServeProcess

Found = dict[str, Any]


async def records(client: httpx.AsyncClient, **filters: str) -> list[Found]:
    answer = await client.get("/api/audit", params=filters)
    assert answer.status_code == 200, answer.text
    return list(answer.json()["records"])


async def until_recorded(client: httpx.AsyncClient, kind: str) -> list[Found]:
    async with asyncio.timeout(PATIENCE):
        while not (found := await records(client, kind=kind)):
            await asyncio.sleep(0.05)  # files are looked at once a second
    return found


async def test_tokens_and_logins(serving: ServeProcess) -> None:
    client = serving.http()
    made = (await client.post("/api/tokens", json={"name": "phone", "role": "observe"})).json()
    phone = serving.http(token=False, headers={"Authorization": f"Bearer {made['secret']}"})
    for _ in range(3):
        await phone.get("/api/sessions")
    await serving.login()
    await client.delete("/api/tokens/phone")
    (token,) = await records(client, kind="token_made")
    assert (token["name"], token["role"], token["by"]) == ("phone", "observe", "admin")
    used = [(one["by"], one["role"], one["address"]) for one in await records(client, kind="token_used")]
    assert used == [("admin", "admin", "127.0.0.1"), ("phone", "observe", "127.0.0.1")]
    (login,) = await records(client, kind="login")
    assert (login["by"], login["address"]) == ("admin", "127.0.0.1")
    (revoked,) = await records(client, kind="token_revoked")
    assert (revoked["name"], revoked["by"]) == ("phone", "admin")
    assert made["secret"] not in json.dumps(await records(client, limit="1000"))


async def test_a_token_file_that_is_changed_behind_its_back(serving: ServeProcess, home: Path) -> None:
    file, client = TokenFile(home / "tokens.json"), serving.http()
    file.create("laptop", "control")
    (changed,) = await until_recorded(client, "tokens_changed")
    assert (changed["added"], changed["removed"], changed["by"]) == (["laptop"], [], "file")


async def test_a_certificate_that_is_renewed(serve: Serve, tmp_path: Path) -> None:
    files, other = make_certificate(tmp_path / "first"), make_certificate(tmp_path / "second", "second")
    serving = await serve(serve={"tls_cert": str(files[0]), "tls_key": str(files[1])})
    before = sha256(files[0].read_bytes()).hexdigest()
    for old, new in zip(files, other, strict=True):
        shutil.copy(new, old.with_suffix(".new"))
        old.with_suffix(".new").replace(old)
    (changed,) = await until_recorded(serving.http(verify=False), "certificate_changed")
    after = sha256(other[0].read_bytes()).hexdigest()
    assert (changed["path"], changed["before"], changed["after"]) == (str(files[0]), before, after)


async def test_a_session_by_rest(serving: ServeProcess, workspace: Path) -> None:
    client = serving.http()
    place = (await client.post("/api/sessions", json={"cwd": str(workspace)})).headers["location"]
    session = place.rpartition("/")[2]
    await client.post(f"{place}/prompt", json={"prompt": "tool one"})
    await client.get(f"{place}/export", params={"format": "md"})
    await client.delete(place)
    kinds = [(one["kind"], one.get("by")) for one in await records(client, session=session)]
    assert kinds[0] == ("session_begun", "admin")
    assert kinds[-2:] == [("session_exported", "admin"), ("session_deleted", "admin")]


async def test_waiting_prompts_that_another_token_changes(
    serve: Serve, workspace: Path, tmp_path: Path
) -> None:
    serving = await serve(sessions={"queue": 5})
    client, socket, go = serving.http(), await serving.socket(), tmp_path / "go"
    made = (await client.post("/api/tokens", json={"name": "kim", "role": "control"})).json()
    kim = serving.http(token=False, headers={"Authorization": f"Bearer {made['secret']}"})
    await socket.initialize()
    session = await socket.new_session(workspace)
    running = socket.start_prompt(session, f"say here\nwait-file {go}")
    await socket.text(session, "here")
    waiting = [socket.start_prompt(session, f"say {word}") for word in ("one", "two", "three")]
    queue = await socket.request("_dragoman/queue", {"sessionId": session})
    one, two, three = (f"/api/sessions/{session}/queue/{queued['id']}" for queued in queue["queue"])
    await kim.patch(one, json={"prompt": "say other"})
    await kim.patch(one, json={"prompt": "say again"})
    await kim.delete(two)
    await client.delete(three)
    go.touch()
    await asyncio.gather(running, *waiting)
    (edited,) = await records(client, kind="prompt_edited")
    (withdrawn,) = await records(client, kind="prompt_withdrawn")
    for found, place in ((edited, one), (withdrawn, two)):
        assert (found["by"], found["author"], found["session"]) == ("kim", "admin", session)
        assert place.endswith(f"/{found['prompt']}")
    assert "say other" not in json.dumps(await records(client, limit="1000"))


async def test_an_answer_that_is_remembered_and_forgotten(serve: Serve, workspace: Path) -> None:
    serving = await serve(policy={"remember": "gateway"})
    editor, client = await serving.socket("/acp"), serving.http()
    await editor.initialize()
    session = await editor.new_session(workspace)
    chosen = {"outcome": {"outcome": "selected", "optionId": "dragoman:project"}}
    editor.on("session/request_permission", chosen)
    tool = {"toolCallId": "c1", "kind": "execute", "title": "make", "rawInput": {"command": "make"}}
    await editor.prompt(session, f"permission {json.dumps({'toolCall': tool})}")
    (kept,) = (await client.get("/api/policy/remembered")).json()["remembered"]
    assert (await client.delete(f"/api/policy/remembered/{kept['id']}")).status_code == 204
    (answer,) = await records(client, kind="answer")
    assert kept["id"] in json.dumps(answer)
    (forgotten,) = await records(client, kind="answer_forgotten")
    assert (forgotten["remembered"]["id"], forgotten["by"]) == (kept["id"], "admin")


async def test_one_record_and_the_check(serving: ServeProcess) -> None:
    client = serving.http()
    (started,) = await records(client, kind="gateway_started")
    answer = await client.get(f"/api/audit/records/{started['id']}")
    assert answer.json() == started
    missing = await client.get("/api/audit/records/20200101-aaaaaaaa:1")
    assert (missing.status_code, missing.json()["code"]) == (404, "unknown_record")
    chain = started["id"].partition(":")[0]
    for number in ("\N{SUPERSCRIPT TWO}", "9" * 5000):
        assert (await client.get(f"/api/audit/records/{chain}:{number}")).status_code == 404
        assert (await client.get("/api/audit", params={"limit": number})).status_code == 400
    report = (await client.post("/api/audit/verify")).json()
    assert report["consistent"] is True and report["problems"] == [] and report["anchoredUpTo"] is None
    assert report["records"] >= 2 and [chain["alive"] for chain in report["chains"]] == [True]


@pytest.mark.parametrize("role", ["observe", "approve"])
async def test_who_may_only_watch_or_answer_does_not_read_it(
    serving: ServeProcess, home: Path, role: str
) -> None:
    _, secret = TokenFile(home / "tokens.json").create("other", role)
    client = serving.http(token=False, headers={"Authorization": f"Bearer {secret}"})
    reads: list[Callable[[], Awaitable[httpx.Response]]] = [
        lambda: client.get("/api/audit"),
        lambda: client.get("/api/audit/records/20200101-aaaaaaaa:1"),
        lambda: client.post("/api/audit/verify"),
    ]
    for read in reads:
        assert (await read()).status_code == 403
