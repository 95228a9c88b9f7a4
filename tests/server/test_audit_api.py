"""The audit by REST: pages, counts, export, one record, and the check with its progress."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from dragoman.audit.record import digest
from dragoman.server.auth.named_tokens import TokenFile
from server.conftest import Serve
from support.serve_process import ServeProcess

RULES = [
    {"name": "listing", "decision": "allow", "command": [["ls"]]},
    {"name": "no rm", "decision": "deny", "command": [["rm"]], "reason": "Move it to the bin."},
]


@pytest.fixture
async def serving(serve: Serve) -> ServeProcess:
    return await serve(policy={"rules": RULES})


def question(line: str, call: str) -> str:
    tool = {"toolCallId": call, "title": line, "kind": "execute", "rawInput": {"command": line}}
    return f"permission {json.dumps({'toolCall': tool})}"


async def worked(serving: ServeProcess, workspace: Path) -> str:
    """A session in which one thing was allowed and one was denied."""
    socket = await serving.socket()
    await socket.initialize()
    session = await socket.new_session(workspace)
    await socket.prompt(session, question("ls src", "c1"))
    await socket.prompt(session, question("rm -rf x", "c2"))
    return session


def person(serving: ServeProcess, home: Path, role: str) -> httpx.AsyncClient:
    _, secret = TokenFile(home / "tokens.json").create(f"a-{role}", role)
    http = serving.http()
    http.headers.update({"Authorization": f"Bearer {secret}"})
    return http


async def records(http: httpx.AsyncClient, **asked: Any) -> list[dict[str, Any]]:
    answer = await http.get("/api/audit", params=asked)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["records"]
    return found


async def test_pages_go_back_to_the_first_record(serving: ServeProcess, workspace: Path) -> None:
    await worked(serving, workspace)
    http, cursor, found = serving.http(), "", list[str]()
    while True:
        page = (await http.get("/api/audit", params={"limit": 2, "cursor": cursor})).json()
        found = [each["id"] for each in page["records"]] + found
        cursor = page.get("nextCursor", "")
        if not cursor:
            break
    assert found == [each["id"] for each in await records(http, limit=1000)]
    assert len(found) == len(set(found)) > 5


async def test_filters(serving: ServeProcess, workspace: Path) -> None:
    session, http = await worked(serving, workspace), serving.http()
    [denied] = await records(http, decision="deny")
    assert (denied["call"], denied["by"], denied["session"]) == ("c2", "no rm", session)
    about = await records(http, session=session, call="c1")
    assert [each["kind"] for each in about] == ["tool_begun", "decision", "tool_ended"]
    assert await records(http, by="no rm") == [denied]
    assert denied in await records(http, since=denied["at"]) and not await records(http, until="2020-01-01")
    for wrong in ({"limit": "0"}, {"cursor": "x"}, {"since": "yesterday"}, {"limit": "1001"}):
        assert (await http.get("/api/audit", params=wrong)).status_code == 400, wrong


async def test_one_record_has_the_rule_and_the_hash_of_its_line(
    serving: ServeProcess, workspace: Path, home: Path
) -> None:
    await worked(serving, workspace)
    [denied] = await records(serving.http(), decision="deny")
    found = (await serving.http().get(f"/api/audit/records/{denied['id']}?hash=true")).json()
    lines = [line for path in home.glob("audit/*/*.ndjson") for line in path.read_bytes().splitlines()]
    assert found["hash"] in map(digest, lines)
    assert found["rule"]["name"] == "no rm" and found["act"]["commands"][0]["words"] == ["rm", "-rf", "x"]
    assert (await serving.http().get("/api/audit/records/20260101-aaaaaaaa:1")).status_code == 404


async def test_hours_are_counted_in_a_stream(serving: ServeProcess, workspace: Path) -> None:
    await worked(serving, workspace)
    answer = await serving.http().get("/api/audit/counts", params={"kind": "decision"})
    steps = [json.loads(line) for line in answer.text.splitlines()]
    hours = [tally for step in steps for tally in step["hours"].values()]
    assert sum(tally["records"] for tally in hours) == 2 and sum(tally["denied"] for tally in hours) == 1
    assert steps[-1]["bytes"] == steps[-1]["of"] > 0


async def test_an_export_is_a_file(serving: ServeProcess, workspace: Path) -> None:
    session, http = await worked(serving, workspace), serving.http()
    whole = await http.get("/api/audit/export", params={"session": session})
    assert [json.loads(line)["session"] for line in whole.text.splitlines()] == [session] * len(
        await records(http, session=session)
    )
    assert 'filename="audit.ndjson"' in whole.headers["content-disposition"]
    table = await http.get("/api/audit/export", params={"decision": "deny", "format": "csv"})
    assert [row[-1] for row in csv.reader(table.text.splitlines())] == ["about", "rm -rf x"]
    assert (await http.get("/api/audit/export", params={"format": "xls"})).status_code == 400


async def test_a_check_tells_its_progress_and_what_is_wrong(
    serving: ServeProcess, workspace: Path, home: Path
) -> None:
    await worked(serving, workspace)
    http = serving.http()
    report = (await http.post("/api/audit/verify")).json()
    assert report["consistent"] and report["anchoredUpTo"] is None and report["records"] > 5
    answer = await http.post("/api/audit/verify", params={"progress": "true"})
    first, *_, last = (json.loads(line) for line in answer.text.splitlines())
    assert first["records"] == 0 and first["of"] > 5 and last["report"]["consistent"]
    [segment] = home.glob("audit/*/*.ndjson")
    segment.write_bytes(segment.read_bytes().replace(b'"no rm"', b'"mo rm"'))
    report = (await http.post("/api/audit/verify")).json()
    assert not report["consistent"] and "changed" in report["problems"][0]["problem"]


async def test_who_controls_sessions_sees_their_records_and_only_an_admin_the_rest(
    serving: ServeProcess, workspace: Path, home: Path
) -> None:
    await worked(serving, workspace)
    admin, eye = serving.http(), person(serving, home, "control")
    every, seen = await records(admin, limit=1000), await records(eye, limit=1000)
    assert seen == [each for each in every if "session" in each] and len(seen) < len(every)
    [start] = await records(admin, kind="gateway_started")
    assert (await eye.get(f"/api/audit/records/{start['id']}")).status_code == 403
    assert (await eye.get(f"/api/audit/records/{seen[0]['id']}")).status_code == 200
    assert '"gateway_started"' not in (await eye.get("/api/audit/export")).text
    counted = (await eye.get("/api/audit/counts")).text.splitlines()
    hours = [tally for line in counted for tally in json.loads(line)["hours"].values()]
    assert sum(tally["records"] for tally in hours) == len(seen)
    assert (await eye.post("/api/audit/verify")).status_code == 200


async def test_without_an_audit_there_is_no_such_path(serve: Serve) -> None:
    serving = await serve(audit={"enabled": False})
    assert (await serving.http().get("/api/audit")).status_code == 404
