"""Remembered answers through `serve`: an editor, a page and REST answer; all are listed, and revoked."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx

from support.clients.bridge_page import Page
from support.gateway_process import Start
from support.serve_process import ServeProcess

from .conftest import Serve

ONCE, PROJECT = "dragoman:once", "dragoman:project"
OURS = {"remember": "gateway"}
PLACE = "/api/policy/remembered"


def command(line: str) -> str:
    tool = {"toolCallId": "c1", "kind": "execute", "title": line, "rawInput": {"command": line}}
    return "permission " + json.dumps({"toolCall": tool})


def chosen(option: str) -> dict[str, str]:
    return {"outcome": "selected", "optionId": option}


def policy(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "dragoman", "policy", *arguments],
        env={**os.environ, "DRAGOMAN_HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


async def waiting(client: httpx.AsyncClient, place: str) -> dict[str, Any]:
    async with asyncio.timeout(20):
        while (question := (await client.get(place)).json()["question"]) is None:
            await asyncio.sleep(0)
    return dict(question)


async def test_in_this_project_in_an_editor_and_today_in_the_page_are_found_and_revoked(
    serve: Serve, workspace: Path
) -> None:
    serving: ServeProcess = await serve(policy=OURS)
    editor = await serving.socket("/acp")
    await editor.initialize()
    session = await editor.new_session(workspace)
    editor.on("session/request_permission", {"outcome": chosen(PROJECT)})
    assert "yes" in str((await editor.prompt(session, command("make test"))).report("permission"))

    page = await Page.open(serving)
    mine = await page.new_session(workspace)
    page.send("send_message", sessionId=mine, content=command("npm run build"))
    asked = await page.next("permission_request", sessionId=mine)
    assert asked["facts"]["commands"] == ["npm run build"]
    assert asked["remember"]["pattern"] == ["run npm run build"]
    answer = {"requestId": asked["requestId"], "outcome": chosen(ONCE)}
    wrong = await page.ask(
        "permission_response", **answer, remember={"scope": "everywhere", "pattern": ["run make *"]}
    )
    assert (wrong["type"], wrong["code"]) == ("error", "not_remembered")
    wish = {"scope": "project", "until": "today", "pattern": ["run npm run *"]}
    assert (await page.ask("permission_response", **answer, remember=wish))["type"] == "ack"
    resolved = await page.next("permission_resolved", requestId=asked["requestId"])
    assert resolved["remembered"]["scope"] == "project"
    await page.next("turn_complete", sessionId=mine)
    events = await page.turn(mine, command("npm run lint"))
    assert [event["by"] for event in events if event["type"] == "permission_resolved"] == [
        f"remembered {resolved['remembered']['id']}"
    ]

    listed = json.loads(policy(serving.gateway.home, "remembered", "--json").stdout)["remembered"]
    assert [(one["words"], one["scope"], one["until"] is None) for one in listed] == [
        ("`make test`", "project", True),
        ("commands that begin with `npm run`", "project", False),
    ]
    client = serving.http()
    assert (await client.get(PLACE)).json()["remembered"] == listed
    tried = {"command": "make test", "cwd": str(workspace)}
    found = (await client.post("/api/policy/test", json=tried)).json()
    assert (found["decision"], found["remembered"]["id"]) == ("allow", listed[0]["id"])
    found = (await client.post("/api/policy/test", json={**tried, "withoutRemembered": True})).json()
    assert (found["decision"], found.get("remembered")) == ("ask", None)
    gone = policy(serving.gateway.home, "forget", listed[0]["id"])
    assert (gone.returncode, "make test" in gone.stdout) == (0, True)
    assert (await client.delete(f"{PLACE}/{listed[1]['id']}")).status_code == 204
    assert (await client.get(PLACE)).json() == {"remembered": []}
    assert "Nothing is remembered" in policy(serving.gateway.home, "remembered").stdout
    asked_again: list[Any] = []

    def ask_again(params: Any) -> Any:
        asked_again.append(params)
        return {"outcome": chosen(ONCE)}

    editor.on("session/request_permission", ask_again)
    await editor.prompt(session, command("make test"))
    assert len(asked_again) == 1


async def test_what_is_not_remembered_is_told(serve: Serve, workspace: Path) -> None:
    serving: ServeProcess = await serve(policy=OURS)
    client = serving.http()
    unknown = await client.delete(f"{PLACE}/m_0")
    assert (unknown.status_code, unknown.json()["code"]) == (404, "unknown_memory")
    missing = policy(serving.gateway.home, "forget", "m_0")
    assert (missing.returncode, "lists ids" in missing.stderr) == (1, True)
    (serving.gateway.home / "remembered.json").write_text("{")
    assert "mend or delete" in (await client.get(PLACE)).json()["problem"]
    broken = policy(serving.gateway.home, "remembered")
    assert (broken.returncode, "mend or delete" in broken.stderr) == (1, True)
    refused = await client.delete(f"{PLACE}/m_0")
    assert refused.status_code == 409


async def test_rest_answers_for_longer(serve: Serve, workspace: Path) -> None:
    serving: ServeProcess = await serve(policy=OURS)
    client = serving.http()
    place = (await client.post("/api/sessions", json={"cwd": str(workspace)})).headers["location"]
    turn = asyncio.create_task(client.post(f"{place}/prompt", json={"prompt": command("make test")}))
    question = await waiting(client, place)
    assert question["why"] == "no rule is about `make test`"
    where = f"{place}/questions/{question['id']}"
    wrong = await client.post(where, json={"optionId": ONCE, "remember": {"scope": "world"}})
    assert (wrong.status_code, wrong.json()["code"]) == (400, "not_remembered")
    wish = {"scope": "everywhere", "until": "1h"}
    assert (await client.post(where, json={"optionId": ONCE, "remember": wish})).status_code == 200
    await turn
    (kept,) = (await client.get(PLACE)).json()["remembered"]
    assert (kept["scope"], kept["words"]) == ("everywhere", "`make test`")


async def test_a_client_of_a_process_that_follows_the_session_answers(
    serve: Serve, dragoman: Start, workspace: Path
) -> None:
    editor = await dragoman("acp", "scripted", "--connect", "never", policy=OURS)
    await editor.initialize()
    session = await editor.new_session(workspace)
    await editor.prompt(session, "say one")
    serving: ServeProcess = await serve(policy=OURS)
    page = await Page.open(serving)
    await page.load(session)
    turn = editor.start_prompt(session, command("make test"))
    asked = await page.next("permission_request")
    wish = {"scope": "project", "until": "1h"}
    told = await page.ask(
        "permission_response", requestId=asked["requestId"], outcome=chosen(ONCE), remember=wish
    )
    assert told["type"] == "ack"
    assert "yes" in str((await turn).report("permission"))
    (kept,) = (await serving.http().get(PLACE)).json()["remembered"]
    assert kept["until"] is not None
