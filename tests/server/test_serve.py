"""`dragoman serve` as a command: its line, its token, its sockets, its end."""

from __future__ import annotations

import asyncio
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from support.gateway_process import GatewayProcess, Start, clean_environment
from support.rpc_peer import RpcPeer
from support.serve_process import ServeProcess, UrlFraming

from .conftest import Serve


async def test_it_prints_one_line_and_that_address_lets_a_browser_in(serving: ServeProcess) -> None:
    browser = serving.http(token=False)
    page = await browser.get(serving.url, headers={"Accept": "text/html"})
    assert page.status_code == 303
    assert "token" not in page.headers["location"]
    ready = await browser.get("/readyz")  # with the cookie
    assert ready.json()["ready"] is True
    serving.gateway.process.send_signal(signal.SIGTERM)
    await serving.gateway.wait_exit()
    assert isinstance(serving.gateway.framing, UrlFraming)
    assert serving.gateway.framing.lines == [serving.url]


async def test_the_token_is_private_and_survives_a_restart(serve: Serve, home: Path) -> None:
    first = await serve()
    file = home / "run" / "token"
    assert file.read_text().strip() == first.token
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    first.gateway.process.send_signal(signal.SIGTERM)
    assert await first.gateway.wait_exit() == 0
    second = await serve()
    assert second.token == first.token


async def test_a_token_can_be_configured(serve: Serve, home: Path) -> None:
    serving = await serve(serve={"auth_token": "configured-by-somebody"})
    assert serving.token == "configured-by-somebody"
    assert not (home / "run" / "token").exists()


async def test_a_token_can_come_from_the_environment(serve: Serve) -> None:
    serving = await serve(env={"DRAGOMAN_SERVE_AUTH_TOKEN": "from-the-environment"})
    assert serving.token == "from-the-environment"
    assert (await serving.http().get("/readyz")).status_code == 200


async def test_the_printed_address_works_whatever_the_token_holds(serve: Serve) -> None:
    token = "a+b/c==&d#e%20f g"
    serving = await serve(serve={"auth_token": token})
    assert serving.token == token
    assert await serving.login(token=urlsplit(serving.url).query.removeprefix("token="))
    assert (await serving.http().get("/api/sessions")).status_code == 200


async def test_a_short_token_is_warned_of_on_this_machine(serve: Serve) -> None:
    serving = await serve(serve={"auth_token": "short"})
    assert serving.token == "short"
    assert (await serving.http().get("/readyz")).status_code == 200
    await serving.gateway.logged(r"level=warning .*auth_token has fewer than 16 characters")


@pytest.mark.parametrize(
    ("host", "token", "words"),
    [
        ("0.0.0.0", "fifteen-letters", "at least 16"),
        ("127.0.0.1", "", "empty"),
        ("127.0.0.1", " " * 20, "no client can send"),
        ("127.0.0.1", "schlüssel-und-schloss", "no client can send"),
        ("127.0.0.1", "two\nlines-of-a-token", "no client can send"),
    ],
)
async def test_a_token_that_others_can_guess_or_nobody_can_send_is_refused(
    dragoman: Start, host: str, token: str, words: str
) -> None:
    settings = {"host": host, "auth_token": token}
    refused = await dragoman("serve", "--port", "0", "--insecure", serve=settings)
    assert await refused.wait_exit() == 2
    assert words in refused.stderr and "serve.auth_token" in refused.stderr


async def test_a_short_token_is_refused_where_a_proxy_lets_others_in(dragoman: Start) -> None:
    settings = {"auth_token": "short", "trusted_proxies": ["127.0.0.1"]}
    refused = await dragoman("serve", "--port", "0", serve=settings)
    assert await refused.wait_exit() == 2
    assert "at least 16 behind a proxy (serve.trusted_proxies)" in refused.stderr


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "somewhere.example"])
async def test_it_does_not_listen_beyond_this_machine_without_tls(dragoman: Start, host: str) -> None:
    gateway = await dragoman("serve", "--port", "0", "--host", host)
    assert await gateway.wait_exit() == 2
    assert "--insecure" in gateway.stderr


async def test_insecure_is_a_decision(serve: Serve) -> None:
    serving = await serve("--host", "0.0.0.0", "--insecure")
    assert serving.url.startswith("http://127.0.0.1:")
    assert (await serving.http().get("/readyz")).status_code == 200


async def test_a_second_one_says_that_there_is_one(serve: Serve, dragoman: Start) -> None:
    first = await serve()
    second = await dragoman("serve", "--port", "0")
    assert await second.wait_exit() == 2
    assert f"another `dragoman serve` of this user is running (at {first.base}/, process " in second.stderr
    assert first.token not in second.stderr


async def test_a_port_that_another_dragoman_has_is_named_with_its_url(
    serving: ServeProcess, dragoman: Start, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    elsewhere = {"DRAGOMAN_HOME": str(tmp_path / "other")}
    second = await dragoman("serve", "--port", str(serving.port), env=elsewhere)
    assert await second.wait_exit() == 2
    assert f"in use by another `dragoman serve`, at {serving.base}/: use that one" in second.stderr
    assert "--port 0 is a free one" in second.stderr
    assert serving.token not in second.stderr


async def test_the_address_of_the_one_that_runs_is_printed_again(serve: Serve, home: Path) -> None:
    first = await serve()
    command = [sys.executable, "-m", "dragoman", "serve", "--url"]
    env = {**clean_environment(), "DRAGOMAN_HOME": str(home)}
    again = await asyncio.to_thread(subprocess.run, command, env=env, capture_output=True, text=True)
    assert again.stdout.strip() == first.url
    first.gateway.process.send_signal(signal.SIGTERM)
    await first.gateway.wait_exit()
    gone = await asyncio.to_thread(subprocess.run, command, env=env, capture_output=True, text=True)
    assert (gone.returncode, "no `dragoman serve`" in gone.stderr) == (2, True)


async def test_a_port_that_is_taken_says_how_to_take_another(dragoman: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        gateway = await dragoman("serve", "--port", str(other.getsockname()[1]))
        assert await gateway.wait_exit() == 2
    assert "--port 0 a free one" in gateway.stderr
    assert "shutting down" not in gateway.stderr


async def test_local_programs_reach_it_over_its_unix_socket(
    serving: ServeProcess, home: Path, workspace: Path
) -> None:
    path = home / "run" / "dragoman.sock"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    peer = RpcPeer(*await asyncio.open_unix_connection(str(path)))
    await peer.initialize()
    session = await peer.new_session(workspace)
    assert (await peer.prompt(session, "hello")).texts == ["hello"]
    await peer.close()


async def test_it_ends_soon_and_says_so_to_everybody(serving: ServeProcess, workspace: Path) -> None:
    socket = await serving.socket()
    await socket.initialize()
    session = await socket.new_session(workspace)
    turn = socket.start_prompt(session, "say before\nsleep-until-cancel")
    await socket.text(session, "before")
    started = time.monotonic()
    serving.gateway.process.send_signal(signal.SIGTERM)
    error = (await turn).error
    assert error is not None and error.data["reason"] == "shutdown"
    assert await socket.closed() == 1012
    assert await serving.gateway.wait_exit() == 0
    assert time.monotonic() - started < 10


async def test_an_unknown_agent_is_a_usage_error(dragoman: Start) -> None:
    gateway: GatewayProcess = await dragoman("serve", "--port", "0", "--agent", "nobody")
    assert await gateway.wait_exit() == 2
    assert "nobody" in gateway.stderr
