"""What a browser's cookie opens, and what it does not: over the network, as a program that stole it would try."""

from __future__ import annotations

import asyncio
import json
import signal
import stat
import time
from pathlib import Path

import httpx
import pytest

from support.clients import http2_websocket
from support.serve_process import Login, Refused, ServeProcess, read_head

from .conftest import Serve

FRONTS = [
    ("GET", "/api/agents"),
    ("GET", "/api/sessions"),
    ("POST", "/api/sessions"),
    ("POST", "/api/tokens"),
    ("POST", "/api/logout"),
    ("GET", "/api/docs"),
    ("GET", "/api/openapi.json"),
    ("GET", "/api"),
    ("POST", "/acp"),
    ("GET", "/acp"),
    ("POST", "/acp/scripted"),
    ("POST", "/acp/inline"),
    ("GET", "/acp/events?session=s"),
    ("POST", "/acp/rpc?client_id=c"),
    ("GET", "/acp/sse?client_id=c"),
    ("GET", "/bridge"),
    ("GET", "/metrics"),
    ("GET", "/nowhere"),
    ("GET", "/%61pi/agents"),
    ("GET", "//api/agents"),
    ("GET", "/readyz/../api/agents"),
    ("GET", "/readyz%2f..%2fapi/agents"),
]
SOCKETS = ["/bridge", "/acp", "/acp/scripted", "/%62ridge", "/assets/../bridge", "/"]


async def stolen_cookie(login: Login) -> str:
    """What a browser sends to another port of the same host: cookies do not tell ports apart."""
    heard: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.set_result((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi")
        writer.close()

    thief = await asyncio.start_server(listen, "127.0.0.1", 0)
    port = thief.sockets[0].getsockname()[1]
    async with httpx.AsyncClient() as browser:
        await browser.get(f"http://127.0.0.1:{port}/", headers={"Cookie": login.cookie})
    thief.close()
    (line,) = [line for line in (await heard).split("\r\n") if line.lower().startswith("cookie:")]
    return line.partition(":")[2].strip()


async def test_a_stolen_cookie_opens_nothing_at_any_front(serving: ServeProcess) -> None:
    cookie = {"Cookie": await stolen_cookie(await serving.login())}
    program = serving.http(token=False)
    for method, path in FRONTS:
        for more in (
            {},
            {"X-Dragoman-Page": ""},
            {"X-Dragoman-Page": "guessed"},
            {"Accept": "text/plain"},
            {"X-Dragoman-Page": "", "Accept": "text/html"},
        ):
            answer = await program.request(method, path, headers={**cookie, **more}, json={})
            assert answer.status_code == 401, (method, path, more, answer.text)
            assert "X-Dragoman-Page" in answer.json()["error"]
            assert "page=" not in str(answer.headers)
    for path in ("/assets/../api/agents", "/assets/..%2fapi%2fagents", "/assets/%2e%2e/api/agents"):
        reader, writer = await serving.open()
        lines = [f"GET {path} HTTP/1.1", f"Host: 127.0.0.1:{serving.port}", f"Cookie: {cookie['Cookie']}"]
        writer.write("\r\n".join([*lines, "", ""]).encode())
        assert (await read_head(reader))[0] == 404, "there is no such file"
        writer.close()


async def test_a_stolen_cookie_opens_no_websocket(serving: ServeProcess) -> None:
    cookie = await stolen_cookie(await serving.login())
    offers = ["", "dragoman.v1", "dragoman.v1, dragoman.page.", "dragoman.v1, dragoman.page.guessed"]
    for path in SOCKETS:
        for offer in offers:
            headers = {"Cookie": cookie, **({"Sec-WebSocket-Protocol": offer} if offer else {})}
            for after_request in (False, True):
                with pytest.raises(Refused) as refused:
                    await serving.socket(path, headers, after_request=after_request)
                assert refused.value.status in (401, 404), (path, offer)
    with pytest.raises(Refused) as refused:
        await http2_websocket.open_socket(serving, "/bridge", authorization="", cookie=cookie)
    assert refused.value.status == 401


async def test_no_answer_to_the_cookie_has_the_pages_secret_in_it(serving: ServeProcess) -> None:
    login = await serving.login()
    browser = serving.http(token=False, headers={"Cookie": login.cookie, "Accept": "text/html"})
    for path in ("/", "/?token=wrong", "/api/docs", "/readyz", "/nowhere", "/?page=1"):
        answer = await browser.get(path)
        assert login.page not in answer.text
        assert login.page not in str(answer.headers) and "location" not in answer.headers
    answer = await browser.get("/", headers={"X-Dragoman-Page": login.page})
    assert login.page not in answer.text + str(answer.headers)


async def test_cookie_and_secret_together_open_every_front(serving: ServeProcess) -> None:
    login = await serving.login()
    page = serving.http(token=False, headers=login.pair)
    assert (await page.get("/api/agents")).status_code == 200
    assert (await page.get("/api/docs")).status_code == 200
    assert (await page.get("/metrics")).status_code == 200
    own = {"Origin": f"http://127.0.0.1:{serving.port}"}
    for path in ("/bridge", "/acp"):
        for after_request in (False, True):
            socket = await serving.socket(path, {**login.upgrade, **own}, after_request=after_request)
            assert socket.handshake["sec-websocket-protocol"] == "dragoman.v1", "and never the secret"
            assert login.page not in str(socket.handshake)
    inside = {name.lower(): value for name, value in login.upgrade.items()}
    socket = await http2_websocket.open_socket(serving, "/acp", authorization="", **inside)
    assert socket.handshake["sec-websocket-protocol"] == "dragoman.v1"
    await socket.initialize()


async def test_a_pair_belongs_together(serving: ServeProcess) -> None:
    one, other = await serving.login(), await serving.login()
    assert one.cookie != other.cookie and one.page != other.page
    page = serving.http(token=False)
    mixed = await page.get("/api/agents", headers={**one.pair, "X-Dragoman-Page": other.page})
    assert mixed.status_code == 401
    assert (await page.get("/api/agents", headers={"X-Dragoman-Page": one.page})).status_code == 401
    assert (await page.get("/api/agents", headers=one.pair)).status_code == 200


async def test_the_printed_address_opened_again_keeps_other_tabs_in(serving: ServeProcess) -> None:
    first = await serving.login()
    again = await serving.login(cookie=first.cookie)
    assert again.cookie == first.cookie
    page = serving.http(token=False)
    for login in (first, again):
        assert (await page.get("/api/agents", headers=login.pair)).status_code == 200


async def test_the_pair_does_not_help_a_page_of_another_origin(serving: ServeProcess) -> None:
    login = await serving.login()
    foreign = {"Origin": "http://127.0.0.1:8810"}
    answer = await serving.http(token=False).get("/api/agents", headers={**login.pair, **foreign})
    assert answer.status_code == 403
    with pytest.raises(Refused) as refused:
        await serving.socket("/bridge", {**login.upgrade, **foreign})
    assert refused.value.status == 403


async def test_programs_with_a_token_need_no_secret(serving: ServeProcess) -> None:
    assert (await serving.http().get("/api/agents")).status_code == 200
    asked = await serving.http(token=False).get(f"/api/agents?token={serving.token}")
    assert asked.status_code == 200
    socket = await serving.socket(f"/acp?token={serving.token}", {})
    assert "sec-websocket-protocol" not in socket.handshake
    await socket.initialize()
    chosen = await serving.socket("/acp", {**serving.bearer, "Sec-WebSocket-Protocol": "acp"})
    assert "sec-websocket-protocol" not in chosen.handshake


async def test_a_login_ends_on_the_server_and_its_sockets_and_streams_are_closed(
    serving: ServeProcess, workspace: Path
) -> None:
    login, other = await serving.login(), await serving.login()
    sockets = [await serving.socket("/bridge", login.upgrade), await serving.socket("/acp", login.upgrade)]
    stays = await serving.socket("/bridge", other.upgrade)
    page = serving.http(token=False, headers=login.pair)
    made = await page.post("/api/sessions", json={"cwd": str(workspace)})
    stream = page.stream("GET", f"/acp/events?session={made.json()['id']}")
    async with stream as events:
        assert events.status_code == 200
        ended = await page.post("/api/logout")
        assert ended.status_code == 204
        (cookie,) = ended.headers.get_list("set-cookie")
        assert cookie.startswith(login.cookie.partition("=")[0] + "=;") and "Max-Age=0" in cookie
        async for _ in events.aiter_raw():
            pass  # until it ends
    for socket in sockets:
        assert await socket.closed() == 1008
    assert (await page.get("/api/agents")).status_code == 401
    assert (await page.get("/", headers={"Accept": "text/html"})).status_code == 401
    with pytest.raises(Refused):
        await serving.socket("/bridge", login.upgrade)
    assert (await serving.http(token=False).get("/api/agents", headers=other.pair)).status_code == 200
    assert stays.framing.close_code is None


async def test_a_token_has_no_login_to_end(serving: ServeProcess) -> None:
    answer = await serving.http().post("/api/logout")
    assert (answer.status_code, answer.json()["code"]) == (409, "no_login")
    assert (await serving.http().get("/api/agents")).status_code == 200


async def test_revoking_the_token_ends_its_logins(serving: ServeProcess) -> None:
    admin = serving.http()
    made = (await admin.post("/api/tokens", json={"name": "phone", "role": "control"})).json()
    login = await serving.login(made["secret"])
    socket = await serving.socket("/bridge", login.upgrade)
    await admin.delete("/api/tokens/phone")
    assert await socket.closed() == 1008
    page = serving.http(token=False, headers=login.pair)
    assert (await page.get("/api/agents")).status_code == 401
    await admin.post("/api/tokens", json={"name": "phone", "role": "control"})
    assert (await page.get("/api/agents")).status_code == 401, "a new one of that name is another"


async def test_a_login_survives_a_restart_and_only_hashes_are_kept(serve: Serve, home: Path) -> None:
    first = await serve("--log-level", "debug")
    login = await first.login()
    first.gateway.process.send_signal(signal.SIGTERM)
    assert await first.gateway.wait_exit() == 0
    file = home / "logins.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    kept = file.read_text()
    assert login.page not in kept and login.cookie.partition("=")[2] not in kept
    second = await serve()
    cookie = f"dragoman-{second.port}={login.cookie.partition('=')[2]}"
    page = second.http(token=False, headers={**login.pair, "Cookie": cookie})
    assert (await page.get("/api/agents")).status_code == 200


async def test_thirty_days_without_use_end_a_login_and_use_renews_it(serve: Serve, home: Path) -> None:
    first = await serve()
    login, other = await first.login(), await first.login()
    first.gateway.process.send_signal(signal.SIGTERM)
    assert await first.gateway.wait_exit() == 0
    file, day = home / "logins.json", 24 * 3600
    kept = json.loads(file.read_text())
    for record, days in zip(kept["logins"], (29, 31), strict=True):
        record["used"] -= days * day
    file.write_text(json.dumps(kept))
    second = await serve()
    program = second.http(token=False)
    for browser, status in ((login, 200), (other, 401)):
        cookie = f"dragoman-{second.port}={browser.cookie.partition('=')[2]}"
        answer = await program.get("/api/agents", headers={**browser.pair, "Cookie": cookie})
        assert answer.status_code == status
        assert (await program.get("/", headers={"Cookie": cookie})).status_code == status
    used = [record["used"] for record in json.loads(file.read_text())["logins"]]
    assert abs(used[0] - time.time()) < day


async def test_use_renews_the_cookie(serving: ServeProcess) -> None:
    login = await serving.login()
    assert "Max-Age=2592000" in login.set_cookie and "HttpOnly" in login.set_cookie
    answer = await serving.http(token=False).get("/api/agents", headers=login.pair)
    assert answer.headers["set-cookie"] == login.set_cookie
    reader, writer = await serving.open()
    lines = {
        "Host": f"127.0.0.1:{serving.port}",
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
        "Sec-WebSocket-Version": "13",
        **login.upgrade,
    }
    writer.write(
        ("GET /bridge HTTP/1.1\r\n" + "".join(f"{n}: {v}\r\n" for n, v in lines.items()) + "\r\n").encode()
    )
    head = await reader.readuntil(b"\r\n\r\n")
    assert login.set_cookie.encode() in head
    writer.close()


async def test_neither_half_is_logged(serve: Serve) -> None:
    serving = await serve("--log-level", "debug", "--log-format", "json")
    login = await serving.login()
    await serving.http(token=False).get("/api/agents", headers=login.pair)
    await serving.http(token=False).get("/api/agents", headers={**login.pair, "Cookie": ""})
    socket = await serving.socket("/bridge", login.upgrade)
    await socket.close()
    with pytest.raises(Refused):
        await serving.socket("/bridge", {**login.upgrade, "Cookie": ""})
    serving.gateway.process.send_signal(signal.SIGTERM)
    await serving.gateway.wait_exit()
    said = serving.gateway.stderr
    assert "response" in said
    assert login.page not in said and login.cookie.partition("=")[2] not in said


async def test_a_person_with_a_cookie_gets_pages_that_fetch_with_the_secret(serving: ServeProcess) -> None:
    login = await serving.login()
    person = serving.http(token=False, headers={"Cookie": login.cookie, "Accept": "text/html"})
    for path, status in (("/", 200), ("/api/docs", 200), ("/metrics", 200), ("/no/such/page", 404)):
        answer = await person.get(path)
        assert (answer.status_code, answer.headers["content-type"][:9]) == (status, "text/html")
        assert "<script" in answer.text and "/api/sessions" not in answer.text
        assert "unsafe" not in answer.headers["content-security-policy"]
