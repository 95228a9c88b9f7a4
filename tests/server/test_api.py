"""REST under `/api`."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
from contextlib import closing
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from dragoman.server.api.shapes import AgentList, Limits, SessionList, SessionView
from support.gateway_process import Start, agent
from support.rpc_peer import is_request
from support.serve_process import ServeProcess

from .conftest import Serve


async def test_a_session_from_its_beginning_to_its_end(serving: ServeProcess, workspace: Path) -> None:
    client = serving.http()
    made = await client.post("/api/sessions", json={"cwd": str(workspace)})
    assert made.status_code == 201
    session = made.json()
    assert (session["agent"], session["cwd"], session["state"]) == ("scripted", str(workspace), "idle")
    place = made.headers["location"]
    assert place == f"/api/sessions/{session['id']}"

    said = await client.post(f"{place}/prompt", json={"prompt": "think no\nsay one\ntool t\nsay two"})
    assert said.json() == {"stopReason": "end_turn", "text": "onetwo", "truncated": False}
    blocks = {"prompt": [{"type": "text", "text": "say three"}]}
    assert (await client.post(f"{place}/prompt", json=blocks)).json()["text"] == "three"

    named = await client.patch(place, json={"title": " My  work "})
    assert (named.status_code, named.json()["title"]) == (200, "My work")
    closed = await client.post(f"{place}/close")
    assert (closed.json()["state"], closed.json()["live"]) == ("closed", False)
    assert (await client.post(f"{place}/close")).status_code == 200
    again = await client.patch(place, json={"title": "Later"})
    assert again.json()["title"] == "Later"
    listed = (await client.get("/api/sessions")).json()["sessions"]
    assert [(each["id"], each["title"]) for each in listed] == [(session["id"], "Later")]
    assert (await client.delete(place)).status_code == 204
    gone = await client.get(place)
    assert (gone.status_code, gone.json()["code"]) == (404, "unknown_session")


async def test_a_store_that_cannot_be_read_is_a_status(
    serving: ServeProcess, workspace: Path, home: Path
) -> None:
    client = serving.http()
    place = (await client.post("/api/sessions", json={"cwd": str(workspace)})).headers["location"]
    [file] = home.rglob("dragoman.db")
    await client.post(f"{place}/prompt", json={"prompt": "say something"})
    [journal] = home.rglob("*.log")
    journal.write_bytes(journal.read_bytes().replace(b"journal 1", b"journal 9", 1))
    with pytest.raises(httpx.RemoteProtocolError):  # it had begun: it breaks off
        await client.get(f"{place}/export")
    with closing(sqlite3.connect(file)) as other:
        other.execute("ALTER TABLE directory RENAME TO elsewhere")
        other.commit()
    for path in ("/api/sessions", place, f"{place}/export"):
        answer = await client.get(path)
        assert (answer.status_code, answer.json()["code"]) == (503, "store_unavailable"), path
    assert "Error in ASGI" not in serving.gateway.stderr


async def test_sessions_that_begin_in_the_same_moment_are_all_kept(
    serving: ServeProcess, workspace: Path
) -> None:
    """Each agent process calls its first session `s1`."""
    client = serving.http()
    made = await asyncio.gather(
        *(client.post("/api/sessions", json={"cwd": str(workspace)}) for _ in range(5))
    )
    assert [each.status_code for each in made] == [201] * 5
    listed = (await client.get("/api/sessions")).json()["sessions"]
    assert {each["id"] for each in listed} == {each.json()["id"] for each in made}


async def test_whoever_watches_sees_the_new_name_and_answers_the_questions(
    serving: ServeProcess, workspace: Path
) -> None:
    client = serving.http()
    socket = await serving.socket()
    await socket.initialize()
    session = await socket.new_session(workspace)
    place = f"/api/sessions/{session}"
    assert (await client.get(place)).json()["clients"] == 1
    await client.patch(place, json={"title": "Ours"})
    await socket.next_message(lambda m: m.get("params", {}).get("update", {}).get("title") == "Ours")

    prompt = asyncio.create_task(client.post(f"{place}/prompt", json={"prompt": "permission\nsay done"}))
    question = await socket.next_message(is_request("session/request_permission"))
    assert (await client.get(place)).json()["state"] == "waiting_for_permission"
    option = question["params"]["options"][0]["optionId"]
    socket.reply(question, {"outcome": {"outcome": "selected", "optionId": option}})
    assert (await prompt).json()["text"].endswith("done")

    running = asyncio.create_task(
        client.post(f"{place}/prompt", json={"prompt": "say here\nsleep-until-cancel"})
    )
    await socket.text(session, "here")
    second = await client.post(f"{place}/prompt", json={"prompt": "x"})
    assert (second.status_code, second.json()["code"]) == (409, "prompt_in_flight")
    assert (await client.post(f"{place}/cancel")).status_code == 202
    assert (await running).json()["stopReason"] == "cancelled"


async def test_a_question_is_shown_and_answered(serving: ServeProcess, workspace: Path) -> None:
    client = serving.http()
    place = (await client.post("/api/sessions", json={"cwd": str(workspace)})).headers["location"]
    turn = asyncio.create_task(client.post(f"{place}/prompt", json={"prompt": "permission"}))
    async with asyncio.timeout(20):
        while (shown := (await client.get(place)).json())["question"] is None:
            pass
    assert shown["state"] == "waiting_for_permission"
    question = shown["question"]
    where = f"{place}/questions/{question['id']}"
    wrong = await client.post(where, json={"optionId": "perhaps"})
    assert (wrong.status_code, "yes" in wrong.json()["error"]) == (400, True)
    answered = await client.post(where, json={"optionId": "yes"})
    assert (answered.status_code, answered.json()["question"]) == (200, None)
    assert '"yes"' in (await turn).json()["text"]
    late = await client.post(where, json={"optionId": "yes"})
    assert (late.status_code, late.json()["code"]) == (404, "unknown_question")


async def test_a_session_as_a_file(serving: ServeProcess, workspace: Path) -> None:
    client = serving.http()
    place = (await client.post("/api/sessions", json={"cwd": str(workspace)})).headers["location"]
    await client.post(f"{place}/prompt", json={"prompt": "say grüße"})
    text = await client.get(f"{place}/export?format=md")
    assert text.headers["content-type"] == "text/markdown; charset=utf-8"
    assert re.fullmatch(r'attachment; filename="dgm_\w+\.md"', text.headers["content-disposition"])
    assert "**Assistant**\n\ngrüße" in text.text
    lines = [json.loads(line) for line in (await client.get(f"{place}/export")).text.splitlines()]
    assert lines[0]["type"] == "session"
    assert [each["seq"] for each in lines[1:]] == list(range(1, len(lines)))
    assert (await client.get(f"{place}/export?format=pdf")).status_code == 400


async def test_agents_and_limits_can_be_read(serve: Serve) -> None:
    serving = await serve(
        agents={"scripted": agent(env={"SECRET": "hidden"}), "other": agent()}, limits={"max_sessions": 7}
    )
    client = serving.http()
    answer = await client.get("/api/agents")
    assert "hidden" not in answer.text
    found = {each["name"]: each for each in answer.json()["agents"]}
    untested = {"level": "none", "why": "it was not tested whether it asks", "neverAsks": []}
    assert found["scripted"] == {
        "name": "scripted", "kind": "acp", "default": True, "sandbox": None, "mediation": untested,
    }  # fmt: skip
    assert not found["other"]["default"]
    limits = (await client.get("/api/limits")).json()
    assert (limits["limits"]["max_sessions"], limits["used"]["sessions"]) == (7, 0)


async def test_an_agent_that_is_added_to_the_file_can_be_used_at_once(
    serving: ServeProcess, home: Path, workspace: Path
) -> None:
    file = home / "config.toml"
    file.write_text(f"{file.read_text()}\n[agents.late]\ncommand = {json.dumps(agent()['command'])}\n")
    client = serving.http()
    async with asyncio.timeout(10):  # the file is looked at once a second
        while "late" not in (await client.get("/api/agents")).text:
            await asyncio.sleep(0.1)
    body = {"cwd": str(workspace), "agent": "late"}
    session = (await client.post("/api/sessions", json=body)).json()
    assert session["agent"] == "late"


async def test_a_token_is_made_used_and_revoked(serving: ServeProcess) -> None:
    client = serving.http()
    made = await client.post("/api/tokens", json={"name": "phone", "role": "observe", "lifetime": 60})
    assert (made.status_code, made.json()["role"], made.json()["expired"]) == (201, "observe", False)
    listed = await client.get("/api/tokens")
    assert [each["name"] for each in listed.json()["tokens"]] == ["phone"]
    assert made.json()["secret"] not in listed.text
    phone = serving.http(token=False)
    phone.headers["authorization"] = f"Bearer {made.json()['secret']}"
    assert (await phone.get("/api/sessions")).status_code == 200
    for method, path in (("POST", "/api/sessions"), ("GET", "/api/tokens"), ("DELETE", "/api/tokens/phone")):
        refused = await phone.request(method, path, json={"cwd": "/"})
        assert (refused.status_code, refused.json()["code"]) == (403, "role"), path
    rows: list[tuple[str, str, Any, int, str]] = [
        ("POST", "/api/tokens", {"name": "phone"}, 409, "token_exists"),
        ("POST", "/api/tokens", {"name": "no good"}, 400, "bad_request"),
        ("POST", "/api/tokens", {"name": "x", "role": "god"}, 400, "bad_request"),
        ("POST", "/api/tokens", {"name": "x", "lifetime": 1e308}, 400, "bad_request"),
        ("POST", "/api/tokens", {"name": "x", "lifetime": -5}, 400, "bad_request"),
        ("POST", "/api/tokens", {"name": "x", "lifetime": 0}, 400, "bad_request"),
        ("POST", "/api/tokens", {"name": "x", "quotas": {"wishes": 3}}, 400, "bad_request"),
        ("DELETE", "/api/tokens/nobody", None, 404, "unknown_token"),
    ]
    for method, path, body, status, code in rows:
        answer = await client.request(method, path, json=body)
        assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    assert (await client.delete("/api/tokens/phone")).status_code == 204
    assert (await phone.get("/api/sessions")).status_code == 401


async def test_what_is_wrong_has_a_status_a_sentence_and_a_code(
    serving: ServeProcess, workspace: Path
) -> None:
    client = serving.http()
    new = {"cwd": str(workspace)}
    rows: list[tuple[str, str, Any, int, str]] = [
        ("GET", "/api/sessions/dgm_nobody", None, 404, "unknown_session"),
        ("GET", "/api/sessions?cursor=x", None, 400, "bad_cursor"),
        ("GET", "/api", None, 404, "not_found"),
        ("GET", "/api/nothing", None, 404, "not_found"),
        ("PUT", "/api/sessions", new, 405, "method_not_allowed"),
        ("POST", "/api/sessions", b"cwd=/", 415, "unsupported_media_type"),
        ("POST", "/api/sessions", {"cwd": "relative"}, 400, "cwd"),
        ("POST", "/api/sessions", {"cwd": 7}, 400, "bad_request"),
        ("POST", "/api/sessions", {}, 400, "bad_request"),
        ("POST", "/api/sessions", {**new, "more": 1}, 400, "bad_request"),
        ("POST", "/api/sessions", {**new, "agent": "nobody"}, 400, "agent"),
        ("PATCH", "/api/sessions/dgm_nobody", {"title": "x"}, 404, "unknown_session"),
        ("PATCH", "/api/sessions/dgm_nobody", {"title": " "}, 400, "bad_request"),
        ("DELETE", "/api/sessions/dgm_nobody", None, 404, "unknown_session"),
        ("POST", "/api/sessions/dgm_nobody/prompt", {"prompt": "x"}, 404, "unknown_session"),
    ]
    session = (await client.post("/api/sessions", json=new)).json()["id"]
    rows += [
        ("POST", f"/api/sessions/{session}/prompt", {"prompt": " \n"}, 400, "empty_prompt"),
        ("POST", f"/api/sessions/{session}/prompt", {"prompt": []}, 400, "empty_prompt"),
    ]
    for method, path, body, status, code in rows:
        content = {"content": body} if isinstance(body, bytes) else {"json": body} if body is not None else {}
        answer = await client.request(method, path, **content)
        assert (answer.status_code, answer.json()["code"]) == (status, code), (
            f"{method} {path}: {answer.text}"
        )
        assert answer.json()["error"].endswith((".", "`")) or status == 400
    assert (await client.put("/api/sessions", json={})).headers["allow"] == "GET, POST"
    assert (await client.head("/api/sessions")).status_code == 200
    assert (await serving.http(token=False).get("/api/sessions")).status_code == 401


async def test_too_many_sessions_are_refused(serve: Serve, workspace: Path) -> None:
    client = (await serve(limits={"max_sessions": 1})).http()
    assert (await client.post("/api/sessions", json={"cwd": str(workspace)})).status_code == 201
    second = await client.post("/api/sessions", json={"cwd": str(workspace)})
    assert (second.status_code, second.json()["code"]) == (503, "session_limit")


async def test_without_a_journal_there_is_nothing_to_export(serve: Serve, workspace: Path) -> None:
    client = (await serve(sessions={"journal": False})).http()
    place = (await client.post("/api/sessions", json={"cwd": str(workspace)})).headers["location"]
    assert (await client.post(f"{place}/prompt", json={"prompt": "say here"})).json()["text"] == "here"
    assert (await client.get(f"{place}/export")).json()["code"] == "not_kept"


async def test_the_openapi_document_is_what_is_served(serving: ServeProcess, workspace: Path) -> None:
    client = serving.http()
    document = (await client.get("/api/openapi.json")).json()
    assert document["openapi"] == "3.1.0"
    schemas = document["components"]["schemas"]
    for name in re.findall(r'"#/components/schemas/(\w+)"', json.dumps(document)):
        assert schemas[name]["type"] == "object"
    ids = [each["operationId"] for path in document["paths"].values() for each in path.values()]
    assert len(ids) == len(set(ids))
    for path, operations in document["paths"].items():
        # Every method of the document is routed, and no other one is.
        for method in ("get", "post", "put", "patch", "delete"):
            answer = await client.request(
                method, path.replace("{id}", "dgm_nobody").replace("{name}", "nobody")
            )
            routed = answer.status_code != 405
            assert routed == (method in operations), f"{method} {path}: {answer.status_code}"
            if routed:
                declared = operations[method]["responses"]
                assert str(answer.status_code) in declared or answer.status_code == 415, f"{method} {path}"

    place = (await client.post("/api/sessions", json={"cwd": str(workspace)})).headers["location"]
    for path, actual, shape in (
        ("/api/sessions", "/api/sessions", SessionList),
        ("/api/sessions/{id}", place, SessionView),
        ("/api/agents", "/api/agents", AgentList),
        ("/api/limits", "/api/limits", Limits),
    ):
        schema = document["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
        assert schema == {"$ref": f"#/components/schemas/{shape.__name__}"}
        answer = await client.get(actual)
        msgspec.json.decode(answer.content, type=shape)
        assert set(answer.json()) <= set(schemas[shape.__name__]["properties"])


class Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


async def test_the_docs_page_needs_nothing_from_elsewhere(serving: ServeProcess) -> None:
    client = serving.http()
    answer = await client.get("/api/docs", headers={"Accept": "text/html"})
    assert answer.headers["content-type"].startswith("text/html")
    assert "unsafe-inline" not in answer.headers["content-security-policy"]
    page = Page()
    page.feed(answer.text)
    assert not [tag for tag, given in page.tags if tag in ("script", "style") or "style" in given]
    links = [given.get("href") or given.get("src") or "" for _, given in page.tags]
    for link in filter(None, links):
        assert link.startswith(("#", "/")), link
        if link.startswith("#"):
            assert any(given.get("id") == link[1:] for _, given in page.tags), link
        else:
            assert (await client.get(link)).status_code == 200
    document = (await client.get("/api/openapi.json")).json()
    for path in document["paths"]:
        assert path in answer.text


@pytest.mark.parametrize("version", ["HTTP/1.1", "HTTP/2"])
async def test_a_prompt_whose_client_leaves_goes_on(
    serving: ServeProcess, workspace: Path, version: str
) -> None:
    second = version == "HTTP/2"
    client = serving.http(http1=not second, http2=second)
    place = (await client.post("/api/sessions", json={"cwd": str(workspace)})).headers["location"]
    socket = await serving.socket()
    await socket.initialize()
    session = place.rpartition("/")[2]
    await socket.request("session/resume", {"sessionId": session, "cwd": str(workspace)})
    gate = workspace / "gate"
    prompt = asyncio.create_task(
        client.post(f"{place}/prompt", json={"prompt": f"say a\nwait-file {gate}\nsay b"})
    )
    await socket.text(session, "a")
    prompt.cancel()
    await asyncio.gather(prompt, return_exceptions=True)
    gate.touch()
    await socket.text(session, "b")


async def test_of_several_answers_one_counts_and_the_others_are_told_which(
    serving: ServeProcess, workspace: Path
) -> None:
    client = serving.http()
    place = (await client.post("/api/sessions", json={"cwd": str(workspace)})).headers["location"]
    turn = asyncio.create_task(client.post(f"{place}/prompt", json={"prompt": "permission"}))
    async with asyncio.timeout(20):
        while (shown := (await client.get(place)).json())["question"] is None:
            pass
    where = f"{place}/questions/{shown['question']['id']}"
    options = ["yes", "no", "always"] * 3
    answers = await asyncio.gather(*(client.post(where, json={"optionId": each}) for each in options))
    [taken] = [option for option, answer in zip(options, answers, strict=True) if answer.status_code == 200]
    assert json.loads((await turn).json()["text"].removeprefix("permission "))["result"] == {
        "outcome": {"outcome": "selected", "optionId": taken}
    }
    others = [each for option, each in zip(options, answers, strict=True) if option != taken]
    for answer in others:
        assert (answer.status_code, answer.json()["code"]) == (409, "already_answered")
        assert f"first: {taken}, by " in answer.json()["error"]


async def test_an_answer_to_a_session_of_another_process_is_reported_as_it_counted(
    dragoman: Start, serving: ServeProcess, workspace: Path
) -> None:
    """An editor and REST answer in the same moment, in two processes: both are told the truth."""
    editor = await dragoman()
    await editor.initialize()
    session = await editor.new_session(workspace)
    watcher = await serving.socket()
    await watcher.initialize()
    await watcher.request("session/load", {"sessionId": session, "cwd": str(workspace), "mcpServers": []})
    client, place = serving.http(), f"/api/sessions/{session}"
    for together in (False, True, True, True):
        turn = editor.start_prompt(session, "permission")
        asked = await editor.next_message(is_request("session/request_permission"))
        await watcher.next_message(is_request("session/request_permission"))
        where = f"{place}/questions/{(await client.get(place)).json()['question']['id']}"
        answering = asyncio.create_task(client.post(where, json={"optionId": "yes"}))
        if together:
            editor.reply(asked, {"outcome": {"outcome": "selected", "optionId": "no"}})
        answer = await answering
        taken = (await turn).report("permission")["result"]["outcome"]["optionId"]
        assert (answer.status_code == 200) == (taken == "yes"), answer.text
        assert answer.status_code in (200, 404, 409)
