"""A batch is answered once, when everything is there."""

from __future__ import annotations

from dragoman.rpc.request import Batch


def test_nothing_is_sent_while_entries_are_still_read() -> None:
    sent: list[bytes] = []
    batch = Batch(sent.append)
    batch.expect()
    batch.add(b"1")
    assert sent == []
    batch.close()
    assert sent == [b"[1]"]


def test_nothing_is_sent_before_the_last_expected_answer() -> None:
    sent: list[bytes] = []
    batch = Batch(sent.append)
    batch.expect()
    batch.expect()
    batch.close()
    batch.add(b"2")
    assert sent == []
    batch.add(b"1")
    assert sent == [b"[2,1]"]


def test_a_batch_without_answers_sends_nothing() -> None:
    sent: list[bytes] = []
    Batch(sent.append).close()
    assert sent == []
