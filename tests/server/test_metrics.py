"""`/metrics`: the format, and that each figure moves when what it counts happens."""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from pathlib import Path

import pytest

from dragoman.server.monitoring.metrics import METRICS
from support.gateway_process import Start
from support.rpc_peer import PATIENCE, is_request
from support.serve_process import Refused, ServeProcess, Socket, UrlFraming, read_head
from support.store.failing_store import WRITES, Faults

SAMPLE = re.compile(r'^([a-z_]+)(?:\{((?:[a-z]+="(?:[^"\\]|\\.)*",?)*)\})? (\S+)$')
GUIDE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "operate.md"

Series = dict[str, dict[str, float]]


def parse(text: str) -> Series:
    """Strictly: every line is a comment of a known kind or a sample of a metric that was announced."""
    announced: dict[str, str] = {}
    found: Series = defaultdict(dict)
    for line in text.splitlines():
        if line.startswith("# "):
            _, word, name, rest = line.split(" ", 3)
            assert word in ("HELP", "TYPE")
            if word == "TYPE":
                announced[name] = rest
            continue
        matched = SAMPLE.match(line)
        assert matched, line
        name, labels, value = matched.groups()
        family = re.sub(r"_(bucket|sum|count)$", "", name) if name not in announced else name
        assert family in announced, line
        assert labels not in found[name], f"{line} comes twice"
        found[name][labels or ""] = float(value)
    return found


async def scrape(serving: ServeProcess) -> Series:
    answer = await serving.http().get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert answer.text.endswith("\n")
    return parse(answer.text)


async def connected(serving: ServeProcess) -> Socket:
    socket = await serving.socket()
    await socket.initialize()
    return socket


async def test_a_token_is_needed(serving: ServeProcess) -> None:
    assert (await serving.http(token=False).get("/metrics")).status_code == 401


async def test_turns_agents_questions_requests_and_bytes_are_counted(
    serving: ServeProcess, workspace: Path
) -> None:
    before = await scrape(serving)
    assert not before["dragoman_turns_total"]
    socket = await connected(serving)
    session = await socket.new_session(workspace)
    await socket.prompt(session, "one\ntwo")
    turn = socket.start_prompt(session, "permission")
    question = await socket.next_message(is_request("session/request_permission"))
    open_now = await scrape(serving)
    assert open_now["dragoman_questions_open"][""] == 1
    assert open_now["dragoman_turns_running"][""] == 1
    assert open_now["dragoman_sessions"]['state="waiting_for_permission"'] == 1
    option = question["params"]["options"][0]["optionId"]
    socket.reply(question, {"outcome": {"outcome": "selected", "optionId": option}})
    await turn
    assert "error" in await socket.request_raw("session/prompt", {"sessionId": "dgm_nobody", "prompt": []})
    assert "error" in await socket.request_raw("made/up", {})

    after = await scrape(serving)
    assert after["dragoman_turns_total"] == {'agent="scripted",outcome="end_turn"': 2}
    assert after["dragoman_turn_seconds_count"] == {'agent="scripted"': 2}
    assert after["dragoman_first_update_seconds_count"] == {'agent="scripted"': 2}
    assert after["dragoman_first_update_seconds_bucket"]['agent="scripted",le="+Inf"'] == 2
    assert after["dragoman_agent_starts_total"]['agent="scripted",outcome="ok"'] >= 1
    assert after["dragoman_agents"] == {'agent="scripted"': 1}
    assert after["dragoman_questions_total"] == {'kind="permission",by="user"': 1}
    assert after["dragoman_question_wait_seconds_count"] == {'kind="permission"': 1}
    assert after["dragoman_requests_total"]['method="session/prompt"'] == 3
    assert after["dragoman_request_errors_total"] == {'method="session/prompt"': 1, 'method="other"': 1}
    assert after["dragoman_clients"][""] == 1
    assert after["dragoman_sessions"] == {'state="idle"': 1}
    for direction in ("received", "sent"):
        name = f"dragoman_{direction}_bytes_total"
        assert after[name]['transport="websocket"'] > 200
    assert after["dragoman_sent_bytes_total"]['transport="http"'] > 1000
    assert after["dragoman_http_responses_total"]['status="200"'] >= 2


async def test_who_is_refused_at_the_door_is_counted_too(serving: ServeProcess) -> None:
    for headers, status in (({}, 401), ({**serving.bearer, "Host": "evil.example"}, 403)):
        with pytest.raises(Refused) as refused:
            await serving.socket(headers=headers)
        assert refused.value.status == status
    with pytest.raises(Refused):
        await serving.socket(headers={**serving.bearer, "Sec-WebSocket-Version": "12"})
    reader, writer = await serving.open()
    writer.write(b"GET / HTTP/1.1\r\nX: " + b"x" * 40_000)
    assert (await read_head(reader))[0] == 431
    writer.close()
    counted = (await scrape(serving))["dragoman_http_responses_total"]
    assert {counted.get(f'status="{status}"') for status in (401, 403, 426, 431)} == {1}


async def test_an_agent_that_dies_is_a_crash_and_its_turn_an_error(
    serving: ServeProcess, workspace: Path
) -> None:
    socket = await connected(serving)
    session = await socket.new_session(workspace)
    ended = await socket.prompt(session, "crash 3")
    assert ended.error is not None
    after = await scrape(serving)
    assert after["dragoman_agent_crashes_total"] == {'agent="scripted"': 1}
    assert after["dragoman_turns_total"] == {'agent="scripted",outcome="error"': 1}
    assert after["dragoman_sessions"] == {'state="agent_dead"': 1}


async def test_a_client_that_left_is_not_counted_but_its_bytes_are(serving: ServeProcess) -> None:
    socket = await connected(serving)
    await socket.close()
    async with asyncio.timeout(PATIENCE):
        while (after := await scrape(serving))["dragoman_clients"][""]:
            await asyncio.sleep(0.02)  # nothing tells another process that a client was cleaned up
    assert after["dragoman_received_bytes_total"]['transport="websocket"'] > 50


async def test_sessions_that_wait_for_the_disk_and_those_that_go_on_unsaved_are_counted(
    dragoman: Start, workspace: Path, faults: Faults
) -> None:
    framing = UrlFraming()
    gateway = await faults.start(
        dragoman, "serve", "--port", "0", framing=framing, sessions={"write_patience": 1.0}
    )
    serving = ServeProcess(gateway, await framing.url())
    socket = await connected(serving)
    session = await socket.new_session(workspace)
    assert (await scrape(serving))["dragoman_journal_waiting"] == {"": 0}
    faults.fail(*WRITES)
    turn = socket.start_prompt(session, "say unkept")
    await gateway.logged("journal is waiting")
    found = await scrape(serving)
    assert (found["dragoman_journal_waiting"], found["dragoman_journal_broken"]) == ({"": 1}, {"": 0})
    await turn
    found = await scrape(serving)
    assert (found["dragoman_journal_waiting"], found["dragoman_journal_broken"]) == ({"": 0}, {"": 1})
    faults.heal()
    await serving.close()


async def test_every_metric_is_announced_with_its_kind(serving: ServeProcess) -> None:
    text = (await serving.http().get("/metrics")).text
    for metric in METRICS:
        assert f"# TYPE {metric.name} {metric.kind}\n" in text
        assert f"# HELP {metric.name} {metric.meaning}\n" in text


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_the_guide_has_every_metric(metric: object) -> None:
    from dragoman.server.monitoring.metrics import Metric

    assert isinstance(metric, Metric)
    labels = ", ".join(f"`{label}`" for label in metric.labels)
    row = f"| `{metric.name}` | {metric.kind} | {labels} | {metric.meaning} |"
    assert row in GUIDE.read_text(), f"the table of {GUIDE.name} lacks or contradicts: {row}"


async def test_the_audit_is_counted(dragoman: Start, home: Path, workspace: Path) -> None:
    framing, anchor = UrlFraming(), home / "elsewhere" / "heads"
    settings = {"anchors": [f"file:{anchor}"], "anchor_records": True}
    rules = [{"name": "no", "decision": "deny", "kind": ["execute"]}]
    gateway = await dragoman("serve", "--port", "0", framing=framing, audit=settings, policy={"rules": rules})
    serving = ServeProcess(gateway, await framing.url())
    socket = await connected(serving)
    session = await socket.new_session(workspace)
    await socket.prompt(session, "permission\ntool one")
    after = await scrape(serving)
    records = after["dragoman_audit_records_total"]
    assert records['kind="gateway_started"'] == records['kind="session_begun"'] == 1
    assert records['kind="tool_begun"'] == 2
    assert after["dragoman_audit_decisions_total"] == {'decision="deny"': 1}
    assert after["dragoman_audit_failures_total"] == after["dragoman_audit_waiting"] == {"": 0}
    place = f'anchor="file:{anchor}"'
    assert after["dragoman_audit_anchor_waiting"][place] >= 5
    assert after["dragoman_audit_anchor_lag_seconds"][place] > 0
    anchor.parent.mkdir()
    await serving.close()
