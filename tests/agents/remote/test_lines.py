"""The parts without IO: event streams, and the numbers that come off an update."""

from __future__ import annotations

import json

import pytest
from msgspec import Raw

from dragoman.agents.remote.credentials import Cookies
from dragoman.agents.remote.ledger import Ledger
from dragoman.agents.remote.lines import without_seq
from dragoman.agents.remote.sse import EventDecoder, ServerEvent, TooLong

STREAM = (
    b': open\n\nid: 1\ndata: {"a":1}\n\r\ndata: {\r\ndata: "b":2}\r\nevent: x\n\n'
    b": still here\n\ndata:c\n\nid: 9\n\n"
)
EVENTS = [ServerEvent(b'{"a":1}', "1"), ServerEvent(b'{ "b":2}'), ServerEvent(b"c")]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_events_are_the_same_however_they_are_cut(size: int) -> None:
    decoder = EventDecoder(1000)
    parts = [STREAM[at : at + size] for at in range(0, len(STREAM), size)]
    assert [event for part in parts for event in decoder.feed(part)] == EVENTS
    assert decoder.comments == 2


def test_an_event_without_end_is_refused() -> None:
    decoder = EventDecoder(1000)
    with pytest.raises(TooLong):
        for _ in range(100):
            decoder.feed(b"data: " + b"x" * 100)


@pytest.mark.parametrize(
    ("meta", "left"),
    [
        ('{"dragoman":{"seq":17}}', None),
        ('{"dragoman":{"seq":17},"other":[1]}', '{"other":[1]}'),
        ('{"dragoman":{"seq":17,"x":null}}', '{"dragoman":{"x":null}}'),
    ],
)
def test_only_the_number_comes_off(meta: str, left: str | None) -> None:
    def line(meta: str | None) -> bytes:
        more = "" if meta is None else f',"_meta":{meta}'
        params = '{"sessionId":"s","update":{"n":12345678901234567890}' + more
        return f'{{"jsonrpc":"2.0","method":"session/update","params":{params}}}}}'.encode()

    assert without_seq(line(meta), Raw(meta.encode())) == (17, line(left))
    assert without_seq(line('{"a":1}'), Raw(b'{"a":1}')) == (None, line('{"a":1}'))


@pytest.mark.parametrize("meta", ['{"a":1e400}', "[]", "5", '{"dragoman":{"seq":"x"}}', '{"dragoman":[]}'])
def test_meta_of_any_shape_costs_no_update(meta: str) -> None:
    ledger = Ledger({})
    update = {"sessionUpdate": "session_info_update"}
    line = f'{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{json.dumps(update)}'
    ledger.incoming(f'{line},"_meta":{meta}}}}}'.encode())
    nested = line.replace("}", f',"_meta":{meta}}}', 1)
    ledger.incoming(f"{nested}}}}}".encode())
    assert len(ledger.to_gateway) == 2


@pytest.mark.rule("G-127")
def test_cookies_are_kept_until_they_are_taken_back() -> None:
    cookies = Cookies()
    cookies.take(["lane=7; Path=/; HttpOnly", "b=x=y"])
    assert cookies.header == "lane=7; b=x=y"
    cookies.take(["b=; Max-Age=0", "lane=8"])
    assert cookies.header == "lane=8"
