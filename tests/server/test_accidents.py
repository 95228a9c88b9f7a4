"""Accidents of neighbours, each by its name: what happened to them must not happen here."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from support.agents.agent_log import AgentLog
from support.gateway_process import agent
from support.serve_process import Refused, ServeProcess, read_head

from .conftest import Serve

EVIL = "http://evil.example"
INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}
FRONTS = ("/acp", "/acp/scripted", "/acp/inline", "/acp/rpc?client_id=x", "/api/sessions")
pytestmark = pytest.mark.rule("G-129")


def no_cors(answer: httpx.Response) -> bool:
    return not [name for name in answer.headers if name.startswith("access-control-")]


async def test_cve_2026_22812_a_page_finds_no_open_local_server(serve: Serve, heard: AgentLog) -> None:
    """An agent server on localhost, without a token and with `Access-Control-Allow-Origin: *`, ran what pages sent."""
    serving = await serve(agents={"scripted": agent(*heard.flags)})
    stranger = serving.http(token=False)
    for front in FRONTS:
        asked = await stranger.options(
            front, headers={"Origin": EVIL, "Access-Control-Request-Method": "POST"}
        )
        simple = await stranger.post(
            front, content="{}", headers={"Origin": EVIL, "Content-Type": "text/plain"}
        )
        program = await stranger.post(front, json=INITIALIZE)
        assert (asked.status_code, simple.status_code, program.status_code) == (403, 403, 401), front
        assert no_cors(asked) and no_cors(simple) and no_cors(program)
    assert heard.lines == []  # nothing was started for any of them


async def test_cve_2025_66414_a_rebound_name_is_refused_also_with_the_token(serving: ServeProcess) -> None:
    """DNS rebinding: the page's own name suddenly resolves to 127.0.0.1, so to the browser we are of its origin."""
    client = serving.http()
    for host in (
        "evil.example",
        f"evil.example:{serving.port}",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
    ):
        for path in ("/", "/acp", "/healthz", "/api/sessions"):
            answer = await client.get(path, headers={"Host": host, "Origin": f"http://{host}"})
            assert answer.status_code == 403, (host, path)
        with pytest.raises(Refused) as refused:
            await serving.socket(headers={**serving.bearer, "Host": host})
        assert refused.value.status == 403
    rebound = serving.http(http1=False, http2=True)
    answer = await rebound.get("/acp", headers={"Host": "evil.example"})
    assert answer.status_code == 403


async def test_cve_2025_49596_nothing_runs_programs_for_whoever_asks(serve: Serve, heard: AgentLog) -> None:
    """The MCP inspector's proxy started any command that a request named, for any page that reached 0.0.0.0."""
    serving = await serve(agents={"scripted": agent(*heard.flags)})
    stranger = serving.http(token=False)
    for path in (
        "/sse?transportType=stdio&command=touch&args=x",
        "/acp?command=touch",
        "/acp/sse?client_id=x",
    ):
        for host in (f"0.0.0.0:{serving.port}", f"127.0.0.1:{serving.port}"):
            assert (await stranger.get(path, headers={"Host": host})).status_code == 401
            from_page = await stranger.get(path, headers={"Host": host, "Origin": EVIL})
            assert from_page.status_code == 403
    assert heard.lines == []


async def test_a_cookie_does_not_open_a_websocket_for_another_site(serving: ServeProcess) -> None:
    """Cross-site WebSocket hijacking: browsers send cookies with every handshake, whoever's page it is."""
    login = await serving.login()
    for origin in (EVIL, "null", "", "file://", f"http://127.0.0.1:{serving.port}.evil.example"):
        with pytest.raises(Refused) as refused:
            await serving.socket(headers={**login.upgrade, "Origin": origin})
        assert refused.value.status == 403
    own = await serving.socket(headers={**login.upgrade, "Origin": f"http://127.0.0.1:{serving.port}"})
    await own.initialize()


async def test_configured_pages_may_call_and_are_not_given_more(serve: Serve) -> None:
    friend = "https://friend.example"
    serving = await serve(serve={"origins": [friend + "/"]})
    client = serving.http(token=False)
    preflight = await client.options(
        "/acp", headers={"Origin": friend, "Access-Control-Request-Method": "POST",
                         "Access-Control-Request-Headers": "authorization, acp-connection-id"}
    )  # fmt: skip
    assert preflight.status_code == 204
    assert preflight.headers["access-control-allow-origin"] == friend
    assert "Authorization" in preflight.headers["access-control-allow-headers"]
    assert "access-control-allow-credentials" not in preflight.headers
    answer = await client.post("/acp", json=INITIALIZE, headers={"Origin": friend, **serving.bearer})
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-origin"] == friend
    assert "Acp-Connection-Id" in answer.headers["access-control-expose-headers"]
    assert "Origin" in answer.headers["vary"]
    refused = await client.post("/acp", json=INITIALIZE, headers={"Origin": friend})
    assert refused.status_code == 401  # a preflight is no key
    foreign = await client.options("/acp", headers={"Origin": EVIL, "Access-Control-Request-Method": "POST"})
    assert foreign.status_code == 403 and no_cors(foreign)


async def test_every_page_and_error_has_the_usual_headers(serving: ServeProcess) -> None:
    upgrade = {"Upgrade": "websocket", "Connection": "Upgrade"}
    client = serving.http(token=False)
    for path, headers in (
        ("/", {}),
        ("/healthz", {}),
        ("/nowhere", serving.bearer),
        ("/acp", {"Host": "evil.example"}),
        ("/acp", {"Origin": EVIL}),
        ("/acp", serving.bearer),
        ("/acp", {**serving.bearer, "X-Long": "a" * 40_000}),
        ("/acp", {**serving.bearer, **upgrade}),
        ("/nowhere", upgrade),
    ):
        answer = await client.get(path, headers=headers)
        assert answer.headers["x-content-type-options"] == "nosniff", (path, headers)
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
    reader, writer = await serving.open()
    writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n")  # httpx would not send it
    status, answered = await read_head(reader)
    assert (status, "content-security-policy" in answered) == (400, True)
    writer.close()


async def test_the_token_leaves_the_address_for_a_cookie_that_scripts_cannot_read(
    serving: ServeProcess, workspace: Path
) -> None:
    page = await serving.http(token=False).get(serving.url, headers={"Accept": "text/html"})
    assert page.status_code == 303
    assert "token" not in page.headers["location"]
    cookie = page.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=Lax" in cookie and serving.token not in cookie
    assert "Secure" not in cookie  # browsers would not send it back over http
    assert page.headers["cache-control"] == "no-store"
