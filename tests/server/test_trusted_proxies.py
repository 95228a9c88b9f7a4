"""For whom a proxy asks: believed of those that are trusted, and of no others."""

from __future__ import annotations

from pathlib import Path
from typing import TypedDict

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.gateway.access.identity import Identity
from dragoman.server.asgi import HttpError
from dragoman.server.auth.admission import Admission, Refusal, Visit
from dragoman.server.auth.credentials import Credentials
from dragoman.server.listen.connection_limit import ConnectionLimit
from dragoman.server.listen.trusted_proxies import TrustedProxies, parse_network
from support.serve_process import Refused, ServeProcess

from .conftest import Serve, works

PROXY = "10.0.0.1"
PROXIES = TrustedProxies(["10.0.0.0/8", "2001:db8:1::/48"])
A, B = "203.0.113.7", "198.51.100.9"


class Forwarding(TypedDict, total=False):
    """Headers of proxies, as `seen` takes them."""

    x_forwarded_for: str
    x_forwarded_proto: str
    x_forwarded_host: str
    forwarded: str


def seen(peer: str = PROXY, *, tls: bool = False, proxies: TrustedProxies = PROXIES, **headers: str) -> Visit:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return proxies.unwrap(Visit("GET", "/", "", {"host": "localhost", **named}, tls, peer))


@pytest.mark.parametrize(
    ("header", "client"),
    [
        (A, A),
        (f"{B}, {A}", A),  # what a client claims stands further left
        (f"{B}, {A}, 10.2.3.4", A),  # a trusted proxy behind another
        ("10.2.3.4, 10.2.3.5", "10.2.3.4"),  # all are ours: a client inside asked
        (f"{A}:4711", A),
        ("2001:db8:2::7", "2001:db8:2::7"),
        ("[2001:db8:2::7]:4711", "2001:db8:2::7"),
        (f"{A}, [2001:db8:1::2]", A),
        (f"::ffff:{A}", A),
        ("unknown", PROXY),  # from here on nothing can be known: it counts for the proxy
        (f"{A}, unknown", PROXY),
        (f"{A}, nonsense, 10.2.3.4", "10.2.3.4"),
        ("", PROXY),
        (",", PROXY),
        ("256.1.1.1", PROXY),
        (f"{A}\x00", PROXY),
        ("1" * 5000, PROXY),
        ("١٢٧.٠.٠.١", PROXY),
    ],
)
def test_the_rightmost_address_that_is_not_trusted_is_the_client(header: str, client: str) -> None:
    assert seen(x_forwarded_for=header).address == client


@pytest.mark.parametrize(
    ("header", "client", "secure", "host"),
    [
        (f"for={A};proto=https;host=box.example", A, True, "box.example"),
        (f"For={B};Proto=https, FOR={A};proto=http", A, False, ""),
        (f'for="[2001:db8:2::7]:4711";proto=HTTPS, for={PROXY}', "2001:db8:2::7", True, ""),
        (f'for="{A}:80";by=_hidden;host="box.example:8443"', A, False, "box.example:8443"),
        ("for=_secret;proto=https", PROXY, True, ""),
        (r'for="203.0.113.\7"', A, False, ""),
        ("proto=https", PROXY, True, ""),
        # what cannot be read is not believed, none of it
        (f"for={A};proto=https,", PROXY, False, ""),
        (f"for={A} proto=https", PROXY, False, ""),
        (f"for={A};for={B};proto=https", PROXY, False, ""),
        (f'for="{A};proto=https', PROXY, False, ""),
        ("for=", PROXY, False, ""),
        ("", PROXY, False, ""),
    ],
)
def test_the_standard_header_says_the_same(header: str, client: str, secure: bool, host: str) -> None:
    visit = seen(forwarded=header)
    assert (visit.address, visit.secure, visit.forwarded_host) == (client, secure, host)


def test_scheme_and_host_are_those_of_the_client_not_of_the_last_stretch() -> None:
    chain = f"{A}, 10.2.3.4"
    assert seen(x_forwarded_for=chain, x_forwarded_proto="https, http").secure
    assert seen(x_forwarded_for=chain, x_forwarded_proto="https").secure
    assert not seen(x_forwarded_for=f"{B}, {A}", x_forwarded_proto="https, http").secure
    assert not seen(x_forwarded_for=A, x_forwarded_proto="http", tls=True).secure
    assert seen(x_forwarded_for=A, tls=True).secure
    assert seen(x_forwarded_for=A, x_forwarded_proto="gopher").secure is False
    hosts = seen(x_forwarded_for=chain, x_forwarded_host="Box.example, inner.example")
    assert hosts.forwarded_host == "box.example"


def test_a_peer_that_is_not_trusted_says_nothing_about_itself() -> None:
    headers: Forwarding = {
        "x_forwarded_for": A,
        "x_forwarded_proto": "https",
        "x_forwarded_host": "box.example",
        "forwarded": f"for={A};proto=https;host=box.example",
    }
    for peer in (B, "127.0.0.1", "::1", "2001:db8:2::1", "", "nonsense"):
        assert seen(peer, **headers) == Visit("GET", "/", "", seen(peer, **headers).headers, False, peer)


def test_headers_that_contradict_each_other_are_not_believed() -> None:
    """Most proxies write one family and let the client's own lines of the other one through."""
    forged = f"for={B};proto=https"
    assert seen(x_forwarded_for=A, forwarded=forged).address == PROXY
    assert not seen(x_forwarded_for=A, x_forwarded_proto="http", forwarded=f"for={A};proto=https").secure
    assert seen(x_forwarded_for=A, forwarded=f"rubbish, for={A}").address == PROXY
    agreed = seen(x_forwarded_for=A, forwarded=f"for={A};proto=https")
    assert (agreed.address, agreed.secure) == (A, True)


def test_without_proxies_one_on_this_machine_is_believed_that_it_has_tls_and_nothing_else() -> None:
    none = TrustedProxies()
    visit = seen(
        "127.0.0.1", proxies=none, x_forwarded_proto="https", x_forwarded_for=A, x_forwarded_host="x"
    )
    assert (visit.address, visit.secure, visit.forwarded_host, visit.proxied) == (
        "127.0.0.1",
        True,
        "",
        False,
    )
    assert not seen(A, proxies=none, x_forwarded_proto="https").secure


def test_networks_are_read_in_every_usual_form() -> None:
    assert [str(parse_network(text)) for text in ("10.0.0.1", " 10.0.0.1/8", "::1", "::ffff:10.0.0.1")] == [
        "10.0.0.1/32",
        "10.0.0.0/8",
        "::1/128",
        "10.0.0.1/32",
    ]
    assert TrustedProxies(["10.0.0.1"]).trusts("::ffff:10.0.0.1")
    assert not TrustedProxies(["10.0.0.1"]).trusts("10.0.0.2")


@given(st.text(max_size=200), st.text(max_size=200), st.text(max_size=60))
def test_no_header_breaks_it(addresses: str, standard: str, scheme: str) -> None:
    visit = seen(x_forwarded_for=addresses, forwarded=standard, x_forwarded_proto=scheme)
    assert visit.proxied and visit.address


@pytest.mark.parametrize(
    ("host", "forwarded", "origin", "status"),
    [
        ("10.0.0.9:8420", "box.example", "https://box.example", None),
        ("10.0.0.9:8420", "evil.example", None, 403),
        ("evil.example", "box.example", None, 403),  # a rebound name stays one whatever else is said
        ("10.0.0.9:8420", "box.example", "https://evil.example", 403),
    ],
)
def test_host_and_origin_are_checked_as_the_client_sent_them(
    host: str, forwarded: str, origin: str | None, status: int | None
) -> None:
    admission = Admission(Credentials("t" * 32), names=frozenset({"box.example"}))
    headers = {"host": host, "x-forwarded-host": forwarded, "authorization": f"Bearer {'t' * 32}"}
    visit = Visit("GET", "/acp", "", headers | ({"origin": origin} if origin else {}), False, PROXY)
    answer = admission.check(PROXIES.unwrap(visit))
    assert isinstance(answer, Identity) if status is None else isinstance(answer, Refusal)
    assert status is None or (isinstance(answer, Refusal) and answer.status == status)


# -- through a running gateway; the proxy is 127.0.0.1, other addresses of this machine are not


def of(address: str, **more: str) -> dict[str, str]:
    return {"X-Forwarded-For": address, **{name.replace("_", "-"): value for name, value in more.items()}}


async def behind_proxy(serve: Serve, **settings: object) -> ServeProcess:
    return await serve(serve={"trusted_proxies": ["127.0.0.1"], "names": ["box.example"], **settings})


async def test_each_client_behind_a_proxy_has_its_own_limit(serve: Serve, workspace: Path) -> None:
    serving = await behind_proxy(serve, connections_per_address=2)
    held = [await serving.socket(headers=serving.bearer | of(A)) for _ in range(2)]
    with pytest.raises(Refused) as refused:
        await serving.socket(headers=serving.bearer | of(A))
    assert (refused.value.status, refused.value.headers["retry-after"]) == (429, "30")
    assert (await serving.http(headers=of(A)).get("/readyz")).status_code == 429
    for after_request in (False, True):  # both ways that a WebSocket can come in
        await serving.socket(headers=serving.bearer | of(B), after_request=after_request)
    assert (await serving.http(headers=of(f"{A}, {B}")).get("/readyz")).status_code == 429, (
        "B's own are counted"
    )
    await serving.gateway.logged(f"connections of {A} refused")
    await held[0].close()
    await serving.gateway.logged("client left")
    assert (await serving.http(headers=of(A)).get("/readyz")).status_code == 200
    await works(serving, workspace)  # the proxy's own connections have no limit


@pytest.mark.parametrize("peer", [PROXY, "127.0.0.1", "::1"])
def test_no_client_escapes_its_limit_with_headers_that_contradict_each_other(peer: str) -> None:
    proxies = TrustedProxies([peer])
    crowd = ConnectionLimit(10_000, 2, proxies.trusts)
    forged: Forwarding = {"x_forwarded_for": "203.0.113.9", "forwarded": "for=198.51.100.7"}
    for _ in range(2):
        crowd.begin_visit(seen(peer, proxies=proxies, **forged))
    with pytest.raises(HttpError):
        crowd.begin_visit(seen(peer, proxies=proxies, **forged))
    crowd.begin_visit(seen(peer, proxies=proxies, x_forwarded_for="203.0.113.9"))
    crowd.end_visit(seen(peer, proxies=proxies, **forged))
    crowd.begin_visit(seen(peer, proxies=proxies, **forged))


async def test_event_streams_count_for_their_client(serve: Serve) -> None:
    serving = await behind_proxy(serve, connections_per_address=1)
    events = {"Accept": "text/event-stream"}
    async with serving.http(headers=of(A) | events).stream("GET", "/acp/sse?client_id=one") as stream:
        assert stream.status_code == 200
        assert (await serving.http(headers=of(A)).get("/readyz")).status_code == 429
        assert (await serving.http(headers=of(B)).get("/readyz")).status_code == 200


async def test_who_is_not_the_proxy_cannot_forge_an_address(serve: Serve) -> None:
    serving = await behind_proxy(serve, connections_per_address=1)
    await serving.socket(headers=serving.bearer | of(A))
    stranger = serving.http(
        token=False,
        headers=of(A, X_Forwarded_Proto="https"),
        transport=httpx.AsyncHTTPTransport(local_address="127.0.0.2"),
    )
    answer = await stranger.get(f"/?token={serving.token}", headers={"Accept": "text/html"})
    assert answer.status_code == 303, "it is not counted as another"
    assert "Secure" not in answer.headers["set-cookie"] and "strict-transport-security" not in answer.headers
    assert (await stranger.get("/metrics")).status_code == 401
    await serving.gateway.logged(r"address=127\.0\.0\.2")


async def test_a_cookie_is_secure_where_the_proxy_has_tls(serve: Serve) -> None:
    serving = await behind_proxy(serve)
    person = serving.http(token=False, headers={"Accept": "text/html"})
    for headers, secure in (
        (of(A, X_Forwarded_Proto="https", X_Forwarded_Host="box.example"), True),
        ({"Forwarded": f'for={A};proto=https;host="box.example"'}, True),
        (of(A, X_Forwarded_Proto="http"), False),
        (of(A), False),
    ):
        answer = await person.get(f"/?token={serving.token}", headers=headers)
        assert ("; Secure" in answer.headers["set-cookie"]) is secure, headers
        assert ("strict-transport-security" in answer.headers) is secure, headers
    opened = await serving.socket(headers=serving.bearer | of(A, X_Forwarded_Proto="https"))
    assert "; Secure" in opened.handshake["set-cookie"]


async def test_log_lines_name_the_client_behind_the_proxy(serve: Serve) -> None:
    serving = await behind_proxy(serve)
    assert (await serving.http(token=False, headers=of(A)).get("/readyz")).status_code == 401
    await serving.gateway.logged(rf"request refused.* address={A}")
    with pytest.raises(Refused):
        await serving.socket(headers=of(B))
    await serving.gateway.logged(rf"websocket refused.* address={B}")
    await serving.socket(headers=serving.bearer | of(B))
    await serving.gateway.logged(rf"websocket opened.* address={B}")


async def test_browsers_are_told_to_come_back_over_tls(serve: Serve, certificate: tuple[Path, Path]) -> None:
    chain, key = map(str, certificate)
    secure = await serve(serve={"tls_cert": chain, "tls_key": key})
    client = secure.http(verify=False)
    for path in ("/healthz", "/", "/nothing-here"):
        assert (await client.get(path)).headers["strict-transport-security"] == "max-age=31536000"
    assert (
        "strict-transport-security"
        not in (await client.get("/healthz", headers={"Host": "localhost"})).headers
    )
