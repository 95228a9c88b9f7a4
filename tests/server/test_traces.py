"""Spans as a collector of OpenTelemetry's receives them."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from support.agents.agent_log import AgentLog
from support.gateway_process import Start, agent
from support.rpc_peer import is_request

from .conftest import Serve

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
META = {"traceparent": f"00-{TRACE}-{PARENT}-01"}
SECRET = "a-word-that-only-the-prompt-has"


class TurnText:
    """OTLP over HTTP on loopback."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.services: set[str] = set()
        self.bodies = b""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    import gzip

                    body = gzip.decompress(body)
                outer.take(body)
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *arguments: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    def take(self, body: bytes) -> None:
        self.bodies += body
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            self.services.update(
                a.value.string_value for a in resource.resource.attributes if a.key == "service.name"
            )
            for scope in resource.scope_spans:
                self.spans += scope.spans

    def named(self, name: str) -> list[Any]:
        return [span for span in self.spans if span.name == name]


@pytest.fixture
def collector() -> Iterator[TurnText]:
    collector = TurnText()
    yield collector
    collector.server.shutdown()
    collector.server.server_close()


async def test_turns_starts_and_waits_continue_the_clients_trace(
    serve: Serve, collector: TurnText, heard: AgentLog, workspace: Path
) -> None:
    serving = await serve(
        agents={"scripted": agent(*heard.flags)},
        env={"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_SERVICE_NAME": "gate"},
    )
    socket = await serving.socket()
    await socket.initialize()
    new = {"cwd": str(workspace), "mcpServers": [], "_meta": META}
    session = (await socket.request("session/new", new))["sessionId"]
    prompt = {
        "sessionId": session,
        "prompt": [{"type": "text", "text": f"say {SECRET}\npermission"}],
        "_meta": META,
    }
    asked = socket.start_request("session/prompt", prompt)
    question = await socket.next_message(is_request("session/request_permission"))
    socket.reply(question, {"outcome": {"outcome": "selected", "optionId": "yes"}})
    await socket.response(asked)
    serving.gateway.process.send_signal(signal.SIGTERM)
    assert await serving.gateway.wait_exit() == 0

    (turn,), (wait,) = collector.named("turn"), collector.named("permission wait")
    start = next(span for span in collector.named("agent start") if span.trace_id.hex() == TRACE)
    assert {span.trace_id.hex() for span in (turn, wait, start)} == {TRACE}
    assert turn.parent_span_id.hex() == start.parent_span_id.hex() == PARENT
    assert wait.parent_span_id == turn.span_id
    assert [event.name for event in turn.events] == ["first update"]
    known = {each.key: each.value.string_value for each in turn.attributes}
    assert known == {
        "dragoman.session": session,
        "dragoman.agent": "scripted",
        "dragoman.outcome": "end_turn",
    }
    told = heard.params("session/prompt")[0]["_meta"]["traceparent"]
    assert told == f"00-{TRACE}-{turn.span_id.hex()}-01"
    assert collector.services == {"gate"}
    assert SECRET.encode() not in collector.bodies


async def test_a_failed_turn_is_marked_and_a_broken_parent_is_none(
    serve: Serve, collector: TurnText, workspace: Path
) -> None:
    serving = await serve(traces={"endpoint": f"{collector.url}/v1/traces"})
    socket = await serving.socket()
    await socket.initialize()
    session = await socket.new_session(workspace)
    prompt = {"sessionId": session, "prompt": [{"type": "text", "text": "crash"}]}
    await socket.request_raw(
        "session/prompt", {**prompt, "_meta": {"traceparent": "nonsense", "tracestate": 7}}
    )
    serving.gateway.process.send_signal(signal.SIGTERM)
    assert await serving.gateway.wait_exit() == 0
    (turn,) = collector.named("turn")
    assert turn.parent_span_id == b""
    assert turn.status.code == 2  # error
    assert collector.services == {"dragoman"}


async def test_a_collector_that_is_not_there_costs_nothing_and_nobody_waits_for_it(
    serve: Serve, workspace: Path
) -> None:
    serving = await serve(env={"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"})
    socket = await serving.socket()
    await socket.initialize()
    session = await socket.new_session(workspace)
    assert (await socket.prompt(session, "here")).texts == ["here"]
    serving.gateway.process.send_signal(signal.SIGTERM)
    async with asyncio.timeout(10):
        assert await serving.gateway.wait_exit() == 0


@pytest.mark.parametrize("env", [{}, {"OTEL_SDK_DISABLED": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": "x"}])
async def test_without_a_collector_opentelemetry_is_not_even_loaded(
    dragoman: Start, env: dict[str, str], workspace: Path
) -> None:
    gateway = await dragoman(env={"PYTHONPROFILEIMPORTTIME": "1", **env})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    assert (await gateway.prompt(session, "here")).texts == ["here"]
    assert "opentelemetry" not in gateway.stderr
    assert "dragoman.gateway" in gateway.stderr
