"""The snippets for nginx and Caddy, run by the real programs: a conversation through each, over WebSocket and SSE."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from support.clients.streamable_client import StreamableClient
from support.gateway_process import Start
from support.rpc_peer import PATIENCE, is_request
from support.serve_process import ServeProcess, UrlFraming
from support.session_client import free_port

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
PROXIES = {"nginx": "/usr/sbin/nginx", "caddy": "/usr/bin/caddy"}


def program(name: str) -> str:
    found = shutil.which(name) or (PROXIES[name] if Path(PROXIES[name]).exists() else None)
    if found is None:
        pytest.skip(f"NOT TESTED: {name} is not installed, so its snippet in deploy/ was not run")
    return found


def replaced(text: str, *changes: tuple[str, str]) -> str:
    """The snippet for this test; every change must find its place, or the snippet is not what is tested."""
    for pattern, value in changes:
        text, count = re.subn(pattern, value.replace("\\", r"\\"), text)
        assert count, f"{pattern} is not in the snippet"
    return text


def nginx(folder: Path, port: int, upstream: int) -> tuple[list[str], dict[str, str]]:
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=localhost",
    ]
    files = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    subprocess.run([*command, *files], check=True, capture_output=True)
    site = replaced(
        (DEPLOY / "nginx" / "dragoman.conf").read_text(),
        (r"server 127\.0\.0\.1:8420;", f"server 127.0.0.1:{upstream};"),
        (r"listen 443 ssl http2;", f"listen 127.0.0.1:{port} ssl http2;"),
        (r"server_name \S+;", "server_name localhost;"),
        (r"/etc/ssl/\S+/fullchain\.pem", str(folder / "cert.pem")),
        (r"/etc/ssl/\S+/privkey\.pem", str(folder / "key.pem")),
    )
    (folder / "site.conf").write_text(site)
    places = "".join(
        f"{kind}_temp_path {folder}/{kind};\n"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    user = "user root;\n" if os.geteuid() == 0 else ""
    (folder / "nginx.conf").write_text(
        f"{user}daemon off;\npid {folder}/pid;\nerror_log stderr;\nworker_processes 1;\n"
        f"events {{}}\nhttp {{\naccess_log off;\n{places}include {folder}/site.conf;\n}}\n"
    )
    return [program("nginx"), "-p", str(folder), "-e", "stderr", "-c", str(folder / "nginx.conf")], {}


def caddy(folder: Path, port: int, upstream: int) -> tuple[list[str], dict[str, str]]:
    # A certificate for a test comes from Caddy's own authority.
    options = "admin off\n\tskip_install_trust\n\tauto_https disable_redirects\n\tdefault_sni localhost"
    names = {
        "CADDY_GLOBAL_OPTIONS": options,
        "DRAGOMAN_DOMAIN": f"https://localhost:{port}, https://127.0.0.1:{port}",
        "DRAGOMAN_UPSTREAM": f"127.0.0.1:{upstream}",
        "XDG_DATA_HOME": str(folder),
        "XDG_CONFIG_HOME": str(folder),
        "HOME": str(folder),
    }
    return [
        program("caddy"),
        "run",
        "--config",
        str(DEPLOY / "caddy" / "Caddyfile"),
        "--adapter",
        "caddyfile",
    ], names


SETUPS: dict[str, Callable[[Path, int, int], tuple[list[str], dict[str, str]]]] = {
    "nginx": nginx,
    "caddy": caddy,
}


def trusting() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


@asynccontextmanager
async def proxied(name: str, serving: ServeProcess, folder: Path) -> AsyncIterator[ServeProcess]:
    """The same server, seen through a proxy."""
    port = free_port()
    folder.mkdir()
    command, env = SETUPS[name](folder, port, serving.port)
    process = await asyncio.create_subprocess_exec(
        *command, env={**os.environ, **env}, stderr=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.DEVNULL
    )
    assert process.stderr is not None
    said = asyncio.create_task(process.stderr.read())
    front = ServeProcess(serving.gateway, f"https://127.0.0.1:{port}/?token={serving.token}")
    try:
        async with asyncio.timeout(PATIENCE):
            while not await _answers(front):
                assert process.returncode is None, (await said).decode()
                await asyncio.sleep(0.05)  # nothing tells another process that a port is open now
        yield front
    finally:
        await front.close()
        if process.returncode is None:
            process.terminate()
        await process.wait()
        said.cancel()


async def _answers(front: ServeProcess) -> bool:
    try:
        _, writer = await front.open(trusting())
    except OSError:
        return False
    writer.close()
    return True


@pytest.mark.parametrize("name", SETUPS)
async def test_a_conversation_over_websocket(
    name: str, serving: ServeProcess, tmp_path: Path, workspace: Path
) -> None:
    async with proxied(name, serving, tmp_path / name) as front:
        socket = await front.socket(context=trusting())
        assert len(socket.handshake["acp-connection-id"]) >= 20
        await socket.initialize()
        session = await socket.new_session(workspace)
        turn = socket.start_prompt(session, "say here\npermission")
        await socket.text(session, "here")  # comes before the turn is over
        question = await socket.next_message(is_request("session/request_permission"))
        socket.reply(question, {"outcome": {"outcome": "selected", "optionId": "yes"}})
        assert (await turn).stop_reason == "end_turn"


@pytest.mark.parametrize("name", SETUPS)
async def test_a_conversation_over_event_streams_in_http2(
    name: str, serving: ServeProcess, tmp_path: Path, workspace: Path
) -> None:
    async with proxied(name, serving, tmp_path / name) as front:
        peer = StreamableClient(front.http(http2=True, http1=False, verify=trusting()))
        await peer.initialize()
        events = await peer.listen()
        assert events.response.http_version == "HTTP/2"
        session = await peer.new_session(workspace, events)
        updates = await peer.listen(session)
        asked = await peer.prompt(session, "say here\nsleep-until-cancel")
        await updates.text("here")  # nothing is held back until the stream ends
        await peer.post({"method": "session/cancel", "params": {"sessionId": session}}, session)
        assert (await updates.response_to(asked))["result"]["stopReason"] == "cancelled"


@pytest.mark.parametrize("name", SETUPS)
async def test_host_and_token_are_still_checked(name: str, serving: ServeProcess, tmp_path: Path) -> None:
    async with proxied(name, serving, tmp_path / name) as front:
        client = front.http(token=False, verify=trusting())
        assert (await client.get("/healthz")).text == "ok\n"
        assert (await client.get("/readyz")).status_code == 401
        foreign = {"Origin": "https://evil.example", **front.bearer}
        assert (await client.get("/readyz", headers=foreign)).status_code == 403
        own = {"Origin": f"https://127.0.0.1:{front.port}", **front.bearer}
        assert (await client.get("/readyz", headers=own)).status_code == 200
        page = await client.get("/", params={"token": front.token}, headers={"Accept": "text/html"})
        cookie = page.headers["set-cookie"]
        assert cookie.startswith(f"dragoman-{serving.port}=") and "; Secure" in cookie


@pytest.mark.parametrize("name", SETUPS)
async def test_the_client_behind_the_proxy_is_known_whatever_it_claims(
    name: str, dragoman: Start, tmp_path: Path
) -> None:
    framing = UrlFraming()
    settings = {"trusted_proxies": ["127.0.0.1"]}
    serving = ServeProcess(
        await dragoman("serve", "--port", "0", framing=framing, serve=settings), await framing.url()
    )
    claims = {
        "X-Forwarded-For": "203.0.113.9",
        "X-Forwarded-Proto": "http",
        "Forwarded": "for=203.0.113.9;proto=http",
    }
    async with proxied(name, serving, tmp_path / name) as front:
        other = httpx.AsyncHTTPTransport(local_address="127.0.0.2", verify=trusting())
        client = front.http(token=False, transport=other, headers=claims)
        assert (await client.get("/metrics")).status_code == 401
        await serving.gateway.logged(r"request refused.* address=127\.0\.0\.2")
        page = await client.get("/", params={"token": front.token}, headers={"Accept": "text/html"})
        assert "; Secure" in page.headers["set-cookie"]
        assert "strict-transport-security" in page.headers
    assert "203.0.113.9" not in serving.gateway.stderr
