from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dragoman.services.terminal import OutputTail


def tail(limit: int, *pieces: bytes) -> OutputTail:
    output = OutputTail(limit)
    for piece in pieces:
        output.add(piece)
    return output


def test_the_beginning_is_dropped_on_a_character_boundary() -> None:
    output = tail(4, "aäöü".encode())
    assert (output.text(complete=True), output.truncated) == ("öü", True)
    assert tail(3, "aäöü".encode()).text(complete=True) == "ü"
    assert tail(0, b"x").text(complete=True) == ""


def test_output_within_the_limit_is_whole() -> None:
    output = tail(5, b"ab", b"cde")
    assert (output.text(complete=False), output.truncated) == ("abcde", False)


def test_half_a_character_waits_for_the_rest_while_the_command_runs() -> None:
    output = tail(100, "ü".encode()[:1])
    assert output.text(complete=False) == ""
    assert output.text(complete=True) == "\ufffd"
    output.add("ü".encode()[1:])
    assert output.text(complete=False) == "ü"


@given(st.lists(st.binary(max_size=50), max_size=20), st.integers(0, 60), st.booleans())
def test_never_more_than_the_limit_whatever_is_written(
    pieces: list[bytes], limit: int, complete: bool
) -> None:
    assert len(tail(limit, *pieces).text(complete=complete).encode()) <= limit


@given(st.text(max_size=200), st.integers(0, 300))
def test_what_is_kept_is_the_end_of_the_text(text: str, limit: int) -> None:
    output = tail(limit, *(bytes([byte]) for byte in text.encode()))
    kept = output.text(complete=True)
    assert text.endswith(kept)
    assert output.truncated == (len(text.encode()) > limit)
    assert len(text.encode()) <= limit or limit - len(kept.encode()) < 4
