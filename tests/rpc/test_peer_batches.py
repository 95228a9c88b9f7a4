"""Several messages in one line: each is answered, together and in one line."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dragoman.rpc.request import Reply, Request
from dragoman.wire import limits
from support.clients.memory_link import Wired, error_of, request


@pytest.mark.rule("G-018")
class TestBatches:
    @pytest.fixture
    def echoing(self, wired: Wired) -> Iterator[Wired]:
        wired.receiver.on_request = lambda request: request.reply(request.params)
        yield wired

    def test_the_answers_come_as_one_array(self, echoing: Wired) -> None:
        echoing.peer.link_messages([b" [" + request(b"1", params=b"[1.0]") + b" , " + request(b'"1"') + b"]"])
        assert echoing.link.sent == [
            b'[{"jsonrpc":"2.0","id":1,"result":[1.0]},{"jsonrpc":"2.0","id":"1","result":{}}]'
        ]

    def test_the_array_waits_for_the_last_answer(self, wired: Wired) -> None:
        assert wired.hear(b"[" + b",".join(map(request, [b"1", b"2", b"3"])) + b"]") == []
        for asked in reversed(wired.receiver.requests):
            assert wired.link.sent == []
            asked.reply(b"null")
        (answers,) = wired.link.take()
        assert [answer["id"] for answer in answers] == [3, 2, 1]

    def test_an_empty_array_is_one_error(self, wired: Wired) -> None:
        assert [error_of(answer) for answer in wired.hear(b"[]")] == [(None, -32600)]

    def test_a_broken_array_is_one_parse_error(self, wired: Wired) -> None:
        assert [error_of(answer) for answer in wired.hear(b"[" + request() + b",")] == [(None, -32700)]
        assert not wired.receiver.requests

    def test_notifications_and_responses_alone_get_no_reply(self, wired: Wired) -> None:
        replies: list[Reply] = []
        wired.peer.request("m", b"{}", replies.append)
        wired.link.take()
        note = b'{"jsonrpc":"2.0","method":"n"}'
        assert wired.hear(b'[%b,{"jsonrpc":"2.0","id":1,"result":1},%b]' % (note, note)) == []
        assert len(wired.receiver.notifications) == 2 and len(replies) == 1

    def test_each_invalid_entry_gets_its_own_error(self, echoing: Wired) -> None:
        entries = [
            b"1",
            b"null",
            b"[]",
            b"[" + request(b"8") + b"]",
            b'{"id":7}',
            request(b"true"),
            request(b"2"),
        ]
        (answers,) = echoing.hear(b"[" + b",".join([*entries, b'{"jsonrpc":"2.0","method":"n"}']) + b"]")
        assert [(answer["id"], answer.get("error", {}).get("code")) for answer in answers] == [
            (None, -32600),
            (None, -32600),
            (None, -32600),
            (None, -32600),
            (7, -32600),
            (None, -32600),
            (2, None),
        ]

    def test_an_id_used_twice_in_one_array_is_refused_once(self, wired: Wired) -> None:
        wired.hear(b"[" + request() + b"," + request() + b"]")
        (asked,) = wired.receiver.requests
        asked.reply(b"1")
        (answers,) = wired.link.take()
        assert ["error" in answer for answer in answers] == [True, False]

    def test_an_array_that_is_too_long_is_refused_as_a_whole(
        self, wired: Wired, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(limits, "MAX_BATCH_ENTRIES", 3)
        (answer,) = wired.hear(b"[1,1,1,1]")
        assert error_of(answer) == (None, -32600)
        assert "at most 3" in repr(answer)
        (answers,) = wired.hear(b"[1,1,1]")
        assert len(answers) == 3

    @pytest.mark.parametrize("line", [b"[]", b"[1]", b"[" + request() + b"]"])
    def test_a_switch_refuses_them_all(self, line: bytes) -> None:
        wired = Wired(accept_batches=False)
        assert [error_of(answer) for answer in wired.hear(line)] == [(None, -32600)]
        assert not wired.receiver.requests

    def test_a_handler_that_raises_has_its_error_in_the_array(self, wired: Wired) -> None:
        def fail(_: Request) -> None:
            raise RuntimeError

        wired.receiver.on_request = fail
        (answers,) = wired.hear(b"[" + request() + b"]")
        assert error_of(answers[0]) == (1, -32603)
