"""A peer keeps both sides of a connection honest: one answer per request, none for anything else."""

from __future__ import annotations

import json
from functools import partial

import pytest

from dragoman.rpc.byte_budget import ByteBudget
from dragoman.rpc.peer import Peer
from dragoman.rpc.request import Reply, Request
from dragoman.wire import limits
from dragoman.wire.errors import INVALID_PARAMS, Malformed, RpcError, internal
from dragoman.wire.framing import FramingError
from support.clients.memory_link import Wired, error_of, request


class TestIncoming:
    @pytest.mark.parametrize(
        "id", [b"1", b'"1"', b"null", b"1.0", b"1e2", b'"\\u0031"', b"1234567890123456789012"]
    )
    @pytest.mark.rule("G-011")
    def test_an_answer_carries_the_id_as_it_was_written(self, wired: Wired, id: bytes) -> None:
        wired.peer.link_messages([request(id)])
        wired.receiver.requests[0].reply(b'{"a":1.0}')
        assert wired.link.sent == [b'{"jsonrpc":"2.0","id":%b,"result":{"a":1.0}}' % id]

    def test_params_pass_as_they_were_written_and_count_as_empty_when_missing(self, wired: Wired) -> None:
        wired.hear(request(params=b'{"a": 1.0}'), b'{"jsonrpc":"2.0","id":2,"method":"m"}')
        assert [each.params for each in wired.receiver.requests] == [b'{"a": 1.0}', b"{}"]

    @pytest.mark.parametrize("id", [b"true", b"{}", b"[]", b"[1]"])
    def test_an_id_of_an_impossible_type_is_refused_with_null(self, wired: Wired, id: bytes) -> None:
        assert [error_of(answer) for answer in wired.hear(request(id))] == [(None, -32600)]
        assert not wired.receiver.requests

    def test_messages_are_handled_in_the_order_they_were_read(self, wired: Wired) -> None:
        seen: list[str] = []
        wired.receiver.on_request = lambda request: seen.append(request.method)
        wired.receiver.on_notification = lambda method, params: seen.append(method)
        wired.hear(request(b"1", "a"), b'{"jsonrpc":"2.0","method":"b"}', request(b"2", "c"))
        assert seen == ["a", "b", "c"]

    @pytest.mark.rule("G-014")
    def test_an_id_in_flight_is_refused_and_the_first_request_goes_on(self, wired: Wired) -> None:
        (answer,) = wired.hear(request(b"1"), request(b"1", "other"))
        assert error_of(answer) == (1, -32600)
        assert answer["error"]["data"] == {"reason": "duplicate_id"}
        (only,) = wired.receiver.requests
        assert wired.peer.incoming(only.key) is only
        assert [error_of(again) for again in wired.hear(request(b"1"))] == [(1, -32600)]
        only.reply(b"1")
        assert wired.link.take() == [json.loads(b'{"jsonrpc":"2.0","id":1,"result":1}')]

    def test_an_answered_id_may_be_used_again(self, wired: Wired) -> None:
        wired.receiver.on_request = lambda request: request.reply(b"true")
        assert len(wired.hear(request(), request())) == len(wired.receiver.requests) == 2

    @pytest.mark.rule("G-011", "G-014")
    def test_ids_that_differ_in_type_are_not_duplicates(self, wired: Wired) -> None:
        assert wired.hear(*map(request, [b"1", b'"1"', b"null", b"1.0"])) == []
        assert len(wired.receiver.requests) == 4

    def test_too_many_requests_in_flight_are_refused(
        self, wired: Wired, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(limits, "MAX_REQUESTS_IN_FLIGHT", 2)
        assert [error_of(a) for a in wired.hear(request(b"1"), request(b"2"), request(b"3"))] == [(3, -32603)]
        wired.receiver.requests[0].reply(b"1")
        wired.link.take()
        assert wired.hear(request(b"3")) == []

    def test_too_many_bytes_in_flight_are_refused_and_one_request_alone_never_is(
        self, wired: Wired, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(limits, "REQUEST_BYTES_IN_FLIGHT", 100)
        large = b'{"a":"%b"}' % (b"x" * 80)
        assert wired.hear(request(b"1", params=b'{"a":"%b"}' % (b"x" * 500))) == []
        assert [error_of(a) for a in wired.hear(request(b"2"))] == [(2, -32603)]
        wired.receiver.requests[0].abandon()
        assert wired.hear(request(b"3", params=large)) == []
        assert [error_of(a) for a in wired.hear(request(b"4", params=large))] == [(4, -32603)]
        assert [error_of(a) for a in wired.hear(request(b"3"))] == [(3, -32600)]  # refused: it frees nothing
        assert [error_of(a) for a in wired.hear(request(b"4", params=large))] == [(4, -32603)]
        wired.receiver.requests[1].params = b"{}"  # translated meanwhile: what it was read as counts
        wired.receiver.requests[1].reply(b"1")
        wired.link.take()
        assert wired.hear(request(b"4", params=large)) == []

    def test_peers_that_share_a_budget_share_what_may_be_in_flight(self) -> None:
        budget = ByteBudget(200)
        one, other = Wired(budget=budget), Wired(budget=budget)
        large = b'{"a":"%b"}' % (b"x" * 100)
        assert one.hear(request(b"1", params=large)) == []
        assert [error_of(answer) for answer in other.hear(request(b"1", params=large))] == [(1, -32603)]
        one.receiver.requests[0].reply(b"1")
        one.link.take()
        assert other.hear(request(b"2", params=large)) == []
        other.peer.link_closed(None)
        assert budget.used == 0
        assert one.hear(request(b"3", params=b'{"a":"%b"}' % (b"x" * 500))) == [], "alone it always fits"

    def test_who_uses_up_a_share_leaves_the_others_theirs(self) -> None:
        whole = ByteBudget(500)
        greedy, modest = (Wired(budget=ByteBudget(250, whole)) for _ in range(2))
        large = b'{"a":"%b"}' % (b"x" * 100)
        answers = [greedy.hear(request(b"%d" % number, params=large)) for number in range(5)]
        assert [error_of(answer) for refused in answers for answer in refused] == [
            (number, -32603) for number in range(2, 5)
        ]
        assert modest.hear(request(b"1", params=large)) == []
        for each in (greedy, modest):
            each.peer.link_closed(None)
        assert whole.used == 0

    @pytest.mark.parametrize(
        ("raised", "code"),
        [
            (RpcError(-32002, "gone", {"a": 1}), -32002),
            (Malformed(INVALID_PARAMS, "bad"), -32602),
            (ZeroDivisionError("a bug"), -32603),
            (KeyError("x"), -32603),
        ],
    )
    def test_a_handler_that_raises_still_answers_once(
        self, wired: Wired, raised: Exception, code: int
    ) -> None:
        def fail(_: Request) -> None:
            raise raised

        wired.receiver.on_request = fail
        assert [error_of(answer) for answer in wired.hear(request())] == [(1, code)]
        assert wired.peer.incoming((int, 1)) is None

    def test_a_bug_is_not_told_to_the_peer(self, wired: Wired, caplog: pytest.LogCaptureFixture) -> None:
        def fail(_: Request) -> None:
            raise RuntimeError("/secret/path")

        wired.receiver.on_request = fail
        assert "/secret/path" not in repr(wired.hear(request()))
        assert "/secret/path" in caplog.text

    def test_a_handler_that_answers_and_then_raises_answered_once(self, wired: Wired) -> None:
        def answer_and_fail(request: Request) -> None:
            request.reply(b"1")
            raise RuntimeError

        wired.receiver.on_request = answer_and_fail
        assert wired.hear(request()) == [json.loads(b'{"jsonrpc":"2.0","id":1,"result":1}')]

    def test_a_second_answer_is_ignored(self, wired: Wired) -> None:
        wired.hear(request())
        (asked,) = wired.receiver.requests
        asked.reply(b"1")
        asked.reply(b"2")
        asked.fail(internal("late"))
        asked.answer(Reply(error=b"{}"))
        assert wired.link.take() == [json.loads(b'{"jsonrpc":"2.0","id":1,"result":1}')]

    def test_what_another_peer_answered_is_passed_on_as_it_is(self, wired: Wired) -> None:
        wired.peer.link_messages([request(b"1"), request(b"2")])
        result, failure = wired.receiver.requests
        result.answer(Reply(result=b'{"x": 1e2}'))
        failure.answer(Reply(error=b'{"code": -1,"message":"","data":{"y":null}}'))
        assert wired.link.sent == [
            b'{"jsonrpc":"2.0","id":1,"result":{"x": 1e2}}',
            b'{"jsonrpc":"2.0","id":2,"error":{"code": -1,"message":"","data":{"y":null}}}',
        ]

    @pytest.mark.parametrize("raised", [RpcError(-32602, "x"), Malformed(-32600, "x"), ZeroDivisionError()])
    @pytest.mark.rule("G-015")
    def test_a_notification_is_never_answered(self, wired: Wired, raised: Exception) -> None:
        def fail(method: str, params: bytes) -> None:
            raise raised

        wired.receiver.on_notification = fail
        line = b'{"jsonrpc":"2.0","method":"n","params":[1]}'
        assert wired.hear(line, line) == []
        assert wired.receiver.notifications == [("n", b"[1]")] * 2

    def test_what_is_intercepted_is_not_looked_at(self) -> None:
        wired, seen = Wired(), list[bytes]()

        def intercept(line: bytes) -> bool:
            seen.append(line)
            return b"mine" in line

        wired.peer = Peer("x", wired.receiver, intercept=intercept)
        wired.peer.link_opened(wired.link)
        oversize = FramingError("x", oversize=True)
        wired.peer.link_messages([b'{"mine"', request(), oversize])
        assert seen == [b'{"mine"', request()]
        assert len(wired.receiver.requests) == 1
        assert len(wired.receiver.malformed) == 1

    def test_an_interceptor_that_fails_costs_one_message(self) -> None:
        def fail(line: bytes) -> bool:
            if b"bad" in line:
                raise RuntimeError
            return False

        wired = Wired()
        wired.peer = Peer("x", wired.receiver, intercept=fail)
        wired.peer.link_opened(wired.link)
        assert wired.hear(request(b"1", "bad"), request(b"2")) == []
        assert [each.id for each in wired.receiver.requests] == [b"2"]


class TestMalformed:
    @pytest.mark.parametrize(
        ("line", "id", "code"),
        [
            (b"nonsense", None, -32700),
            (b'{"id":1', None, -32700),
            (b"5", None, -32600),
            (b'{"jsonrpc":"2.0","id":1}', "1", -32600),
            (b'{"jsonrpc":"2.0"}', None, -32600),
            (b'{"jsonrpc":"2.0","result":{}}', None, -32600),
            (b'{"jsonrpc":"2.0","id":"x","method":1}', '"x"', -32600),
            (b'{"jsonrpc":"2.0","id":1,"method":""}', "1", -32600),
            (b'{"id":1,"method":"m"}', "1", -32600),
            (b'{"jsonrpc":"1.0","id":"x","method":"m"}', '"x"', -32600),
            (b'{"jsonrpc":2,"id":null,"method":"m"}', None, -32600),
            (b'{"jsonrpc":"1.0","id":true,"method":"m"}', None, -32600),
        ],
    )
    @pytest.mark.rule("G-016", "G-017")
    def test_is_answered_with_its_code_and_the_connection_goes_on(
        self, wired: Wired, line: bytes, id: str | None, code: int
    ) -> None:
        (answer,) = wired.hear(line)
        assert error_of(answer) == (None if id is None else json.loads(id), code)
        assert not wired.link.closed and not wired.receiver.requests
        wired.hear(request())
        assert len(wired.receiver.requests) == 1

    def test_is_not_answered_when_the_receiver_does_not_want_it(self, wired: Wired) -> None:
        wired.receiver.tells_malformed = False
        assert wired.hear(b"Loading model...", b"[]", b"[1]", b'{"id":1,"method":"m"}') == []
        assert [frame for frame, _ in wired.receiver.malformed][:2] == [b"Loading model...", b"[]"]

    def test_a_lenient_peer_needs_no_version(self) -> None:
        wired = Wired(strict=False)
        assert wired.hear(b'{"id":1,"method":"m"}', b'{"jsonrpc":"1.0","method":"n"}') == []
        assert len(wired.receiver.requests) == len(wired.receiver.notifications) == 1

    @pytest.mark.rule("G-143")
    def test_an_oversize_request_is_refused_with_its_id(self, wired: Wired) -> None:
        big = FramingError(
            "message is larger than 9 bytes", b'{"jsonrpc":"2.0","id":"a,b","method":"m","pa', True
        )
        wired.peer.link_messages([big, request()])
        assert [error_of(answer) for answer in wired.link.take()] == [("a,b", -32600)]
        assert len(wired.receiver.requests) == 1 and not wired.link.closed

    def test_a_broken_framing_is_answered_and_ends_the_connection(self, wired: Wired) -> None:
        wired.peer.link_messages([FramingError("no length", b'{"id":1,', fatal=True)])
        assert [error_of(answer) for answer in wired.link.take()] == [(None, -32700)]
        assert wired.link.closed

    @pytest.mark.rule("G-017")
    def test_a_stranger_is_cut_off_without_an_answer(self, wired: Wired) -> None:
        wired.peer.link_messages([FramingError("not ours", fatal=True, silent=True)])
        assert wired.link.take() == []
        assert wired.link.closed


class TestOutgoing:
    @pytest.mark.rule("G-010")
    def test_ids_count_up_from_one_for_each_peer(self, wired: Wired) -> None:
        for peer in (wired, Wired()):
            assert [peer.peer.request("m", b'{"a":1.0}', lambda reply: None) for _ in range(3)] == [1, 2, 3]
            assert peer.link.sent[2] == b'{"jsonrpc":"2.0","id":3,"method":"m","params":{"a":1.0}}'

    def test_answers_reach_who_asked_in_any_order(self, wired: Wired) -> None:
        replies: dict[str, Reply] = {}
        for name in "abc":
            wired.peer.request("m", b"{}", partial(replies.__setitem__, name))
        wired.hear(
            b'{"jsonrpc":"2.0","id":3,"result":{"x": 1e2}}',
            b'{"jsonrpc":"2.0","id":1,"error":{"code": -5,"message":"no"}}',
            b'{"jsonrpc":"2.0","id":2,"result":null,"error":null}',
        )
        assert replies == {
            "a": Reply(error=b'{"code": -5,"message":"no"}'),
            "b": Reply(result=b"null"),
            "c": Reply(result=b'{"x": 1e2}'),
        }
        assert [replies[name].ok for name in "abc"] == [False, True, True]

    def test_a_response_without_a_result_counts_as_null(self, wired: Wired) -> None:
        replies: list[Reply] = []
        wired.peer.request("fs/write_text_file", b"{}", replies.append)
        wired.link.take()
        assert wired.hear(b'{"jsonrpc":"2.0","id":1}') == []
        assert replies == [Reply(result=b"null")]

    @pytest.mark.parametrize("id", [b"2", b'"1"', b"1.0", b"null", b"true", b"{}", b"-1", b"0"])
    @pytest.mark.rule("G-013")
    def test_a_response_that_nobody_waits_for_is_dropped(self, wired: Wired, id: bytes) -> None:
        replies: list[Reply] = []
        wired.peer.request("m", b"{}", replies.append)
        wired.link.take()
        for member in (b'"result":1', b'"error":{"code":1,"message":""}', b'"result":1,"error":null'):
            assert wired.hear(b'{"jsonrpc":"2.0","id":%b,%b}' % (id, member)) == []
        assert replies == [] and not wired.receiver.malformed

    @pytest.mark.rule("G-013")
    def test_a_second_response_is_dropped(self, wired: Wired) -> None:
        replies: list[Reply] = []
        wired.peer.request("m", b"{}", replies.append)
        wired.link.take()
        line = b'{"jsonrpc":"2.0","id":1,"result":1}'
        assert wired.hear(line, line) == []
        assert len(replies) == 1

    def test_a_forgotten_request_gets_no_reply(self, wired: Wired) -> None:
        replies: list[Reply] = []
        call = wired.peer.request("m", b"{}", replies.append)
        wired.peer.forget(call)
        wired.peer.forget(call)
        wired.hear(b'{"jsonrpc":"2.0","id":1,"result":1}')
        wired.peer.link_closed(None)
        assert replies == []

    def test_a_reply_handler_that_raises_does_not_end_the_connection(self, wired: Wired) -> None:
        def fail(_: Reply) -> None:
            raise RuntimeError

        wired.peer.request("m", b"{}", fail)
        wired.hear(b'{"jsonrpc":"2.0","id":1,"result":1}', request())
        assert len(wired.receiver.requests) == 1

    @pytest.mark.rule("G-012")
    def test_one_id_may_be_outstanding_in_both_directions(self, wired: Wired) -> None:
        replies: list[Reply] = []
        wired.peer.request("ours", b"{}", replies.append)
        wired.hear(request(b"1", "theirs"), b'{"jsonrpc":"2.0","id":1,"result":"for us"}')
        wired.receiver.requests[0].reply(b'"for them"')
        assert replies == [Reply(result=b'"for us"')]
        assert wired.link.take() == [{"jsonrpc": "2.0", "id": 1, "result": "for them"}]

    @pytest.mark.rule("G-143")
    def test_an_oversize_response_fails_the_request_and_is_not_answered(self, wired: Wired) -> None:
        replies: list[Reply] = []
        wired.peer.request("fs/read_text_file", b"{}", replies.append)
        wired.link.take()
        big = FramingError("too large", b'{"jsonrpc":"2.0","id":1,"result":{"content":"aaa', oversize=True)
        wired.peer.link_messages([big, big])
        assert wired.link.take() == []
        (reply,) = replies
        assert json.loads(reply.error)["data"] == {"reason": "message_too_large"}

    def test_an_oversize_request_with_the_id_of_one_of_ours_is_not_its_response(self, wired: Wired) -> None:
        replies: list[Reply] = []
        wired.peer.request("m", b"{}", replies.append)
        wired.link.take()
        wired.peer.link_messages([FramingError("too large", b'{"id":1,"params":{"aaa', oversize=True)])
        assert [error_of(answer) for answer in wired.link.take()] == [(1, -32600)]
        assert replies == []

    def test_notifications_have_no_id(self, wired: Wired) -> None:
        wired.peer.notify("n", b'{"a":[1]}')
        assert wired.link.sent == [b'{"jsonrpc":"2.0","method":"n","params":{"a":[1]}}']


class TestClosing:
    def test_every_pending_request_of_ours_fails_once_with_what_the_receiver_says(self, wired: Wired) -> None:
        wired.receiver.closing_error = internal("The agent died", "agent_exited")
        replies: list[Reply] = []
        for _ in range(3):
            wired.peer.request("m", b"{}", replies.append)
        wired.peer.link_closed("pipe broke")
        wired.peer.link_closed(None)
        assert wired.receiver.closings == ["pipe broke"]
        assert replies == [Reply.failed(internal("The agent died", "agent_exited"))] * 3

    def test_without_a_reason_it_says_who_is_gone(self, wired: Wired) -> None:
        replies: list[Reply] = []
        wired.peer.request("m", b"{}", replies.append)
        wired.peer.link_closed(None)
        error = json.loads(replies[0].error)
        assert error["message"] == "the other side is gone"
        assert error["data"] == {"reason": "connection_closed"}

    def test_one_that_fails_does_not_cost_the_others_their_answer(self, wired: Wired) -> None:
        replies: list[Reply] = []

        def fail(_: Reply) -> None:
            raise RuntimeError

        for on_reply in (replies.append, fail, replies.append):
            wired.peer.request("m", b"{}", on_reply)
        wired.peer.link_closed(None)
        assert len(replies) == 2

    def test_asking_afterwards_fails_at_once_and_sends_nothing(self, wired: Wired) -> None:
        wired.peer.link_closed(None)
        replies: list[Reply] = []
        wired.peer.request("m", b"{}", replies.append)
        wired.peer.notify("n", b"{}")
        assert len(replies) == 1 and not replies[0].ok
        assert wired.link.take() == []

    def test_asking_from_within_a_failed_reply_does_not_loop(self, wired: Wired) -> None:
        replies: list[Reply] = []

        def again(reply: Reply) -> None:
            replies.append(reply)
            wired.peer.request("m", b"{}", replies.append)

        wired.peer.request("m", b"{}", again)
        wired.peer.link_closed(None)
        assert len(replies) == 2

    def test_requests_of_the_peer_are_forgotten(self, wired: Wired) -> None:
        wired.hear(request())
        (asked,) = wired.receiver.requests
        wired.peer.link_closed(None)
        assert wired.peer.incoming(asked.key) is None

    def test_back_pressure_is_told_to_the_receiver(self, wired: Wired) -> None:
        wired.peer.link_writable(False)
        wired.peer.link_writable(True)
        assert wired.receiver.writable == [False, True]


class TestFlushing:
    def test_a_peer_can_have_its_link_write_before_the_turn_of_the_loop_ends(self) -> None:
        wired = Wired()
        written: list[bytes] = []

        class Stream(type(wired.link)):  # type: ignore[misc]
            def flush(self) -> None:
                written.extend(self.sent)

        stream = Stream()
        wired.peer.link_opened(stream)
        wired.peer.notify("n", b"{}")
        assert wired.peer.flush is not None
        wired.peer.flush()
        assert written == stream.sent != []

    def test_a_link_that_cannot_is_not_asked_to(self) -> None:
        assert Wired().peer.flush is None
