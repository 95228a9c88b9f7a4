"""Paths that no link has, on every route: a status of the 4xx kind, never a failure of ours."""

from __future__ import annotations

import asyncio
import json

import pytest

from support.clients import http2_websocket
from support.rpc_peer import PATIENCE
from support.serve_process import Refused, ServeProcess

BEFORE = (
    "/assets/",
    "/acp/",
    "/acp/events?session=",
    "/acp/sse?client_id=",
    "/api/",
    "/api/sessions/",
    "/api/tokens/",
    "/api/sessions?cursor=",
    "/api/sessions?cwd=",
    "/bridge/",
    "/",
)
ODD = {
    "nul": "x%00.js",
    "nul alone": "%00",
    "not utf-8": "%ff%fe.js",
    "surrogate": "%ed%a0%80.js",
    "up": "../../index.html",
    "up, encoded": "%2e%2e/%2e%2e/index.html",
    "up, all encoded": "..%2f..%2fpyproject.js",
    "backslash": "..%5c..%5cx.js",
    "absolute": "%2fetc%2fpasswd.js",
    "long": "x" * 5000 + ".js",
    "line ends": "a%0d%0ab.js",
    "tab": "%09x.js",
    "half an escape": "x%",
    "folder": ".js/",
    "dots": "....js",
    "semicolons": "x;a=b.js",
}
WORST = ["nul", "long", "not utf-8"]


async def statuses(serving: ServeProcess, method: str, paths: list[str]) -> dict[str, int]:
    async with serving.http() as client:
        found = {}
        for path in paths:
            request = client.build_request(
                method, "/", headers={"Accept": "application/json, text/event-stream"}
            )
            request.url = request.url.copy_with(raw_path=path.encode())
            async with asyncio.timeout(PATIENCE):
                response = await client.send(request, stream=True)  # event streams do not end
                found[path] = response.status_code
                await response.aclose()
        return found


async def test_odd_paths_are_never_our_failure(serving: ServeProcess) -> None:
    for method, odd_ones in (("GET", list(ODD)), ("POST", WORST), ("DELETE", WORST), ("HEAD", WORST)):
        paths = [before + ODD[name] for before in BEFORE for name in odd_ones]
        found = await statuses(serving, method, paths)
        assert {path[:40]: status for path, status in found.items() if status >= 500} == {}, method
        files = {status for path, status in found.items() if path.startswith("/assets/")}
        assert files == {404}, method
    assert "Traceback" not in serving.gateway.stderr


async def test_odd_values_in_a_body_are_never_our_failure(serving: ServeProcess) -> None:
    client = serving.http()
    for odd in ("/a\0b", "/" + "x" * 5000, "/\ud800", "\n", "../..", ""):
        asked = json.dumps({"cwd": odd, "agent": odd, "name": odd, "title": odd, "prompt": odd})
        for path in ("/api/sessions", "/api/tokens", "/api/sessions/x/prompt"):
            answer = await client.post(path, content=asked, headers={"Content-Type": "application/json"})
            assert 400 <= answer.status_code < 500, (path, odd[:20], answer.text)
    assert "Traceback" not in serving.gateway.stderr


async def test_odd_paths_of_sockets_are_not_found(serving: ServeProcess) -> None:
    for odd in ODD.values():
        for opened in (serving.socket(f"/acp/{odd}"), http2_websocket.open_socket(serving, f"/acp/{odd}")):
            with pytest.raises(Refused) as refused:
                await opened
            assert refused.value.status == 404, odd[:40]
    assert "Traceback" not in serving.gateway.stderr
