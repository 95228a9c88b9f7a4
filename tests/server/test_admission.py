"""Who may come in, decided without a network."""

from __future__ import annotations

import re
from urllib.parse import unquote, urlencode

import pytest

from dragoman.server.asgi import header_bytes
from dragoman.server.auth.admission import Admission, Refusal, Visit, came_secure
from dragoman.server.auth.credentials import Credentials
from dragoman.server.listen.protocol_sniffer import response

TOKEN = "a-token-that-nobody-guesses"
ADMISSION = Admission(
    Credentials(TOKEN),
    cookie="dragoman-8420",
    names=frozenset({"box.example"}),
    origins=frozenset({"https://friend.example"}),
)
HOST = "127.0.0.1:8420"
pytestmark = pytest.mark.rule("G-129")
BEARER = {"authorization": f"Bearer {TOKEN}"}


def status(path: str = "/acp", query: str = "", method: str = "POST", **headers: str) -> int | None:
    named = {name.replace("_", "-"): value for name, value in {"host": HOST, **headers}.items()}
    refused = ADMISSION.check(Visit(method, path, query, named))
    return refused.status if isinstance(refused, Refusal) else None


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8420", "localhost", "localhost:1", "[::1]:8420", "192.168.1.7", "box.example:8420"]
)
def test_addresses_localhost_and_configured_names_are_served(host: str) -> None:
    assert status(host=host, **BEARER) is None


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8420", "", "127.0.0.1.evil.example", "localhost.evil.example", "[::1"],
)
def test_a_name_that_was_rebound_to_us_is_refused_even_with_the_token(host: str) -> None:
    assert status(host=host, **BEARER) == 403


@pytest.mark.parametrize(
    "origin", ["http://127.0.0.1:8420", "https://127.0.0.1:8420", "https://friend.example"]
)
def test_our_own_pages_and_configured_ones_may_call(origin: str) -> None:
    assert status(origin=origin, **BEARER) is None


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "null",
        "",
        "http://127.0.0.1:9999",
        "file://",
        "http://127.0.0.1:8420.evil.example",
        "http://[x",  # no address at all
    ],
)
def test_foreign_pages_are_refused_even_with_the_token(origin: str) -> None:
    assert status(origin=origin, **BEARER) == 403


def test_the_token_is_taken_as_bearer_query_or_login() -> None:
    assert status(**BEARER) is None
    assert status(authorization=f"bearer  {TOKEN}") is None
    assert status(query=f"token={TOKEN}&x=1") is None
    cookie, page = login()
    assert status(cookie=f"other=1; {cookie}", x_dragoman_page=page) is None
    assert status(cookie=cookie, sec_websocket_protocol=f"x,dragoman.v1 , dragoman.page.{page}") is None


@pytest.mark.parametrize(
    "address", ["http://127.0.0.1:8420/?token={}", "http://[x/?a=b&token={}#/s/1", "token={}"]
)
def test_the_whole_address_counts_as_the_token_in_it(address: str) -> None:
    assert status(query=urlencode({"token": address.format(TOKEN)})) is None
    assert status(query=urlencode({"token": address.format("wrong")})) == 401


def test_the_cookie_alone_opens_the_pages_files_and_nothing_else() -> None:
    cookie, page = login()
    for path in ("/", "/assets/index.js", "/readyz"):
        assert status(path, method="GET", cookie=cookie) is None
    for path in (
        "/acp",
        "/bridge",
        "/api",
        "/api/agents",
        "/metrics",
        "/nowhere",
        "/assets",
        "/Assets/x",
        "/%62ridge",
    ):
        assert status(path, method="GET", cookie=cookie) == 401
        assert status(path, method="GET", x_dragoman_page=page) == 401
        assert status(path, method="GET", cookie=cookie, x_dragoman_page=page[:-1]) == 401
        assert status(path, method="GET", cookie=cookie, x_dragoman_page=page) is None


def login() -> tuple[str, str]:
    """A browser's cookie, and its page secret."""
    headers = dict(welcome().headers)
    return headers["set-cookie"].partition(";")[0], headers["location"].partition("#page=")[2]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": "Bearer wrong"},
        {"authorization": "Bearer"},
        {"authorization": f"Basic {TOKEN}"},
        {"authorization": f"Bearer {TOKEN}x"},
        {"cookie": f"dragoman-8420={TOKEN}"},
        {"cookie": "dragoman-8420="},
        {"authorization": "Bearer \u00ff\ud800"},
    ],
)
def test_no_token_or_a_wrong_one_is_401(headers: dict[str, str]) -> None:
    assert status(**headers) == 401


def test_a_wrong_bearer_is_not_mended_by_a_cookie() -> None:
    cookie, page = login()
    assert status(cookie=cookie, x_dragoman_page=page, authorization="Bearer wrong") == 401


def test_only_the_health_probe_needs_no_token() -> None:
    assert status("/healthz", method="GET") is None
    assert status("/healthz", method="GET", host="evil.example") == 403
    assert status("/healthz/", method="GET") == 401
    assert status("/nowhere") == 401  # a stranger does not even learn which paths there are


def welcome(path: str = "/", query: str = f"a=1&token={TOKEN}&b=%2F"):  # type: ignore[no-untyped-def]
    refused = ADMISSION.check(Visit("GET", path, query, {"host": HOST, "accept": "text/html,*/*"}))
    assert isinstance(refused, Refusal)
    return refused


def test_a_browser_loses_the_token_from_its_address_bar() -> None:
    answer = welcome()
    headers = dict(answer.headers)
    assert (answer.status, headers["location"].partition("#")[0]) == (303, "/?a=1&b=%2F")
    assert TOKEN not in headers["set-cookie"]
    assert "HttpOnly" in headers["set-cookie"] and "SameSite=Lax" in headers["set-cookie"]
    assert "Max-Age=2592000" in headers["set-cookie"], "thirty days"


def test_a_proxy_on_this_machine_is_believed_that_it_has_tls() -> None:
    assert came_secure(True, "192.0.2.7", "")
    assert came_secure(False, "127.0.0.1", "https") and came_secure(False, "::1", "http, HTTPS")
    for peer, said in (("192.0.2.7", "https"), ("127.0.0.1", "http"), ("127.0.0.1", ""), ("", "https")):
        assert not came_secure(False, peer, said), (peer, said)


@pytest.mark.parametrize(
    "path",
    [
        "//evil.example/x",
        "/\\evil.example",
        "///evil.example",
        "/\t/evil.example",
        "/\t\\evil.example",
        "/\n/evil.example",
        "/\r\n//evil.example",
        "/ /evil.example",
        "/\x00\x1f//evil.example",
        "\\\\evil.example",
    ],
)
def test_the_redirect_stays_on_this_site(path: str) -> None:
    location = dict(welcome(path).headers)["location"]
    assert location.startswith("/evil.example")


@pytest.mark.parametrize(
    "path",
    [
        "/a\r\nset-cookie: x=1",
        "/a\tb",
        "/a\\b",
        "/sessions/ü",
        "/http://evil.example/",
        "/a\u2028b",
        "/a?b#c",
    ],
)
def test_the_redirect_is_an_address_and_nothing_else(path: str) -> None:
    location = dict(welcome(path, f"token={TOKEN}").headers)["location"].partition("#page=")[0]
    assert re.fullmatch(r"/[!$%&'()*+,./:;=@~\w-]*", location, re.ASCII)
    assert unquote(location) == path, "and it is the place that was asked for"


def test_no_header_that_is_sent_can_begin_another() -> None:
    assert header_bytes("/a\r\nset-cookie: x\x00\x7f\t=ü") == b"/aset-cookie: x=\xfc"
    refusal = response(303, "elsewhere", (("location", "/a\r\nset-cookie: x=1"),))
    assert b"\r\nlocation: /aset-cookie: x=1\r\n" in refusal
