"""What a reader of an event stream gets that comes back with the id of its last event."""

from __future__ import annotations

import json
import re

import pytest

from dragoman.server.fronts.event_stream import EventStream, KeptMessage


def made() -> EventStream:
    return EventStream(lambda size: None)


def ids(stream: EventStream) -> list[str]:
    return re.findall(r"^id: (.*)$", stream.take().decode(), re.MULTILINE)


def numbers(missed: tuple[int, list[KeptMessage]] | None) -> tuple[int, list[int]] | None:
    return None if missed is None else (missed[0], [kept.number for kept in missed[1]])


async def test_ids_of_this_stream_say_exactly_what_is_missed() -> None:
    stream = made()
    stream.send(b"{}")
    stream.send_event(17, b"{}")
    stream.send(b"{}")
    stream.send(b"{}")
    stream.occupy()
    first, update, second, third = ids(stream)
    assert update == "17"
    assert numbers(stream.missed(first)) == (0, [2, 3])
    assert numbers(stream.missed(update)) == (17, [2, 3])
    assert numbers(stream.missed(second)) == (17, [3])
    assert numbers(stream.missed(third)) == (17, [])


async def test_whoever_comes_from_an_earlier_stream_lacks_everything_of_this_one() -> None:
    earlier, stream = made(), made()
    for each in (earlier, stream):
        for _ in range(3):
            each.send(b"{}")
    [*_, last] = ids(earlier)
    assert numbers(stream.missed(last)) == (0, [1, 2, 3])
    assert numbers(stream.missed("17")) == (17, [1, 2, 3]), "nobody has read from it yet"
    assert not stream.sent(last) and not stream.keeps_all_after(last)
    assert earlier.sent(last) and earlier.keeps_all_after(last)


async def test_what_is_no_id_and_what_is_to_come_are_unknown() -> None:
    stream = made()
    stream.send(b"{}")
    [only] = ids(stream)
    name = only.partition("-")[2]
    for strange in ("", "x", "1.", "1.2", "1.2-", f"-1.1-{name}", "1" * 16, "\u0661"):
        assert stream.missed(strange) is None, strange
    assert not stream.sent(f"0.2-{name}") and not stream.keeps_all_after(f"0.2-{name}")


@pytest.mark.parametrize("end", ["\r\n", "\r", "\n"])
def test_an_event_is_one_line_of_data_however_its_message_was_printed(end: str) -> None:
    """A journal may hold line ends that former versions let in."""
    stream = EventStream(lambda size: None)
    message = json.dumps({"a": [1, {"b": "x"}]}, indent=1).replace("\n", end).encode() + end.encode()
    stream.send(message)
    stream.send_event(7, message)
    lines = stream.take().decode().splitlines()
    data = [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]
    assert [json.loads(line) for line in data] == [{"a": [1, {"b": "x"}]}] * 2
    assert all(line.startswith(("id: ", "data: ")) or not line for line in lines)
