"""`$/cancel_request`, mapped in both directions."""

from __future__ import annotations

import pytest

from dragoman.rpc.request import Reply, Request
from support.clients.memory_link import Wired, request


@pytest.mark.rule("G-067")
class TestCancelling:
    def test_a_request_of_ours_is_withdrawn_by_its_id_and_still_answered(self, wired: Wired) -> None:
        replies: list[Reply] = []
        wired.peer.request("a", b"{}", lambda reply: None)
        call = wired.peer.request("b", b"{}", replies.append)
        wired.link.take()
        wired.peer.cancel(call)
        assert wired.link.sent == [b'{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":2}}']
        wired.hear(b'{"jsonrpc":"2.0","id":2,"error":{"code":-32800,"message":""}}')
        assert len(replies) == 1

    def test_what_is_settled_or_unknown_is_not_withdrawn(self, wired: Wired) -> None:
        call = wired.peer.request("a", b"{}", lambda reply: None)
        wired.hear(b'{"jsonrpc":"2.0","id":1,"result":1}')
        wired.peer.cancel(call)
        wired.peer.cancel(99)
        assert wired.link.take() == []

    @pytest.mark.parametrize("id", [b"5", b'"5"', b"null", b"5.0"])
    def test_the_peer_withdraws_the_request_that_it_names(self, wired: Wired, id: bytes) -> None:
        cancelled: list[bytes] = []

        def watch(request: Request) -> None:
            request.on_cancel = lambda: cancelled.append(request.id)

        wired.receiver.on_request = watch
        wired.hear(*map(request, [b"5", b'"5"', b"null", b"5.0"]))
        assert wired.hear(self.cancel(b'{"requestId":%b}' % id)) == []
        assert cancelled == [id]
        assert not wired.receiver.notifications

    @pytest.mark.parametrize(
        "params",
        [b'{"requestId":2}', b'{"requestId":{}}', b'{"requestId":true}', b"{}", b"[]", b"null", b"1"],
    )
    def test_one_that_names_nothing_is_dropped(self, wired: Wired, params: bytes) -> None:
        wired.hear(request())
        assert wired.hear(self.cancel(params)) == []
        assert not wired.receiver.malformed and not wired.receiver.notifications

    def test_one_that_comes_late_is_dropped(self, wired: Wired) -> None:
        cancelled: list[int] = []
        wired.hear(request())
        (asked,) = wired.receiver.requests
        asked.on_cancel = lambda: cancelled.append(1)
        asked.reply(b"1")
        wired.link.take()
        assert wired.hear(self.cancel(b'{"requestId":1}')) == []
        assert not cancelled

    def test_one_that_nobody_handles_or_that_fails_does_no_harm(self, wired: Wired) -> None:
        wired.hear(request(b"1"), request(b"2"))

        def fail() -> None:
            raise RuntimeError

        wired.receiver.requests[1].on_cancel = fail
        assert wired.hear(self.cancel(b'{"requestId":1}'), self.cancel(b'{"requestId":2}')) == []
        assert wired.hear(b'{"jsonrpc":"2.0","method":"n"}') == []
        assert len(wired.receiver.notifications) == 1

    @staticmethod
    def cancel(params: bytes) -> bytes:
        return b'{"jsonrpc":"2.0","method":"$/cancel_request","params":%b}' % params
