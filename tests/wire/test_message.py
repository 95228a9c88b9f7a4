"""Envelopes: ids keep their type, values stay raw, and what is broken says how."""

from __future__ import annotations

import json

import pytest
from hypothesis import given

from dragoman.wire import message
from dragoman.wire.errors import INVALID_REQUEST, PARSE_ERROR, Malformed
from dragoman.wire.message import ABSENT
from support.exact_json import exact
from support.json_values import OBJECTS, VALUES, encoded

DEEP = b"[" * 100_000 + b"]" * 100_000


def malformed(line: bytes) -> Malformed:
    with pytest.raises(Malformed) as caught:
        message.decode(line)
    return caught.value


class TestIds:
    @pytest.mark.rule("G-011")
    def test_ids_of_different_type_have_different_keys(self) -> None:
        raw = [b"1", b'"1"', b"1.0", b"null", b'"null"', b"0", b'""', b"-1", b"2"]
        assert len({message.id_key(each) for each in raw}) == len(raw)

    @pytest.mark.parametrize(
        ("one", "other"), [(b"1", b" 1 "), (b'"a"', b'"\\u0061"'), (b"100.0", b"1e2"), (b"0", b"-0")]
    )
    def test_two_spellings_of_one_id_have_one_key(self, one: bytes, other: bytes) -> None:
        assert message.id_key(one) == message.id_key(other) is not None

    @pytest.mark.parametrize("number", [2**53 + 1, 2**63, 2**64 + 1, 10**40, -(2**70)])
    def test_big_integers_keep_every_digit(self, number: int) -> None:
        assert message.id_key(b"%d" % number) == (int, number)
        assert message.id_key(b"%d" % number) != message.id_key(b"%d" % (number + 1))

    @pytest.mark.parametrize(
        "raw", [b"true", b"false", b"{}", b"[]", b"[1]", b"", b"nan", b"1 2", b'"\xff"', DEEP]
    )
    def test_what_cannot_be_an_id_has_no_key(self, raw: bytes) -> None:
        assert message.id_key(raw) is None

    @pytest.mark.parametrize(
        "raw", [b"1", b'"1"', b"null", b"1.0", b"1e2", b'"\\u0031"', b"12345678901234567890123"]
    )
    def test_an_id_stays_as_it_was_written(self, raw: bytes) -> None:
        envelope = message.decode(b'{"jsonrpc":"2.0","id": %b ,"method":"x"}' % raw)
        assert bytes(envelope.id) == raw


class TestDecode:
    @given(encoded(OBJECTS))
    def test_params_pass_byte_by_byte(self, params: bytes) -> None:
        envelope = message.decode(b'{"jsonrpc":"2.0","id":1,"method":"x","params":%b}' % params)
        assert bytes(envelope.params) == params
        assert envelope.result is ABSENT and envelope.error is ABSENT

    def test_members_tell_what_a_message_is(self) -> None:
        request = message.decode(b'{"jsonrpc":"2.0","method":"m","id":null}')
        assert request.method == "m" and bytes(request.id) == b"null" and request.params is ABSENT
        notification = message.decode(b'{"method":"m","params":[1],"jsonrpc":"2.0"}')
        assert notification.id is ABSENT and bytes(notification.params) == b"[1]"
        response = message.decode(b'{"id":1,"result":null}')
        assert bytes(response.result) == b"null" and response.jsonrpc == "" and response.method == ""

    def test_unknown_members_are_no_error(self) -> None:
        assert message.decode(b'{"x":{"id":2},"id":1,"method":"m","_meta":null}').method == "m"

    @pytest.mark.parametrize(
        "line",
        [
            b"",
            b"hello",
            b"{",
            b'{"id":1',
            b'{"id":1,}',
            b'{"id":1}x',
            b'{"id":1}{"id":2}',
            b"{'id':1}",
            b'{"id":1,"params":NaN}',
            b'{"id":1,"params":01}',
            b'{"id":1,"params":"a\x01b"}',
            b'{"id":1,"params":"\\x"}',
            b'{"id":1,"params":"\\u12"}',
            b'{"id":1,"params":"\\ud800',
            b'\xff{"id":1}',
            b'{"id":1,"method":"m","params":{"text":"\xff"}}',
            b'{"id":1,"method":"m","params":{"text":"\xed\xa0\x80"}}',  # a surrogate, as CESU-8 has it
            b'{"id":1,"method":"m","params":{"text":"\xc0\xaf"}}',  # an overlong slash
            b'{"id":1,"method":"m","params":%b}' % DEEP,
        ],
        ids=lambda line: repr(line[:40]),
    )
    @pytest.mark.rule("G-017")
    def test_what_is_not_json_is_a_parse_error_with_id_null(self, line: bytes) -> None:
        error = malformed(line)
        assert (error.code, error.id) == (PARSE_ERROR, b"null")
        assert error.message.startswith("Parse error: ")

    @pytest.mark.parametrize("line", [b"1", b"null", b"true", b'"x"', b"[]", b"[[1]]", b"1.5"])
    @pytest.mark.rule("G-017")
    def test_json_that_is_no_object_is_an_invalid_request(self, line: bytes) -> None:
        error = malformed(line)
        assert (error.code, error.id) == (INVALID_REQUEST, b"null")

    @pytest.mark.parametrize(
        ("line", "id"),
        [
            (b'{"jsonrpc":2.0,"id":1,"method":"m"}', b"1"),
            (b'{"jsonrpc":"2.0","id":"a","method":3}', b'"a"'),
            (b'{"jsonrpc":"2.0","method":null,"id":7}', b"7"),
            (b'{"jsonrpc":"2.0","method":["m"],"id":true}', b"null"),
            (b'{"jsonrpc":"2.0","method":{}}', b"null"),
        ],
    )
    def test_members_of_the_wrong_type_are_an_invalid_request_with_its_id(
        self, line: bytes, id: bytes
    ) -> None:
        error = malformed(line)
        assert (error.code, error.id) == (INVALID_REQUEST, id)

    @pytest.mark.parametrize(
        ("text", "read"),
        [
            (rb"\ud83d", "\ufffd"),
            (rb"\uDE00 tail", "\ufffd tail"),
            (rb"\ud83d\ude00 and \ud83d", "😀 and \ufffd"),
            (rb"\ud83d\ud83d\ude00", "\ufffd😀"),
            (rb"\\ud83d \ud83d", "\\ud83d \ufffd"),
            (rb"\\\ud83d\"", '\\\ufffd"'),
        ],
    )
    def test_half_an_emoji_costs_one_character_and_not_the_message(self, text: bytes, read: str) -> None:
        line = b'{"id":1,"method":"m","params":{"text":"%b"}}' % text
        assert json.loads(bytes(message.decode(line).params)) == {"text": read}
        (entry,) = message.decode_batch(b"[" + line + b"]")
        assert json.loads(entry)["params"] == {"text": read}

    @given(VALUES)
    def test_no_json_value_raises_anything_but_malformed(self, value: object) -> None:
        for member in ("jsonrpc", "id", "method", "params", "result", "error"):
            try:
                message.decode(json.dumps({member: value}).encode())
            except Malformed as error:
                assert error.code == INVALID_REQUEST


class TestBatches:
    @pytest.mark.parametrize("line", [b"[", b"[]", b" [1]", b"\t\r[", b"[}"])
    def test_a_bracket_makes_a_batch(self, line: bytes) -> None:
        assert message.is_batch(line)

    @pytest.mark.parametrize("line", [b"", b" ", b"{}", b'"["', b'{"a":[]}'])
    def test_anything_else_does_not(self, line: bytes) -> None:
        assert not message.is_batch(line)

    @given(encoded(OBJECTS), encoded(VALUES))
    def test_entries_pass_byte_by_byte(self, one: bytes, other: bytes) -> None:
        assert message.decode_batch(b"[ %b ,%b]" % (one, other)) == [one, other]

    @pytest.mark.parametrize("line", [b"[", b"[1,]", b"[1] 2", b'["\xff"]', b"[" + DEEP + b"]"])
    def test_a_broken_array_is_a_parse_error(self, line: bytes) -> None:
        with pytest.raises(Malformed) as caught:
            message.decode_batch(line)
        assert (caught.value.code, caught.value.id) == (PARSE_ERROR, b"null")


class TestFindingIds:
    @pytest.mark.parametrize(
        ("line", "id"),
        [
            (b'{"id":1}', b"1"),
            (b'{"a":{"id":2},"id":"x,}"}', b'"x,}"'),
            (b'{"a":{"id":2}}', b"null"),
            (b'{"id":null}', b"null"),
            (b'{"id":true}', b"null"),
            (b'{"id":[1]}', b"null"),
            (b"[1]", b"null"),
            (b"nonsense", b"null"),
            (DEEP, b"null"),
        ],
        ids=lambda value: repr(value[:30]),
    )
    def test_the_id_of_a_whole_message(self, line: bytes, id: bytes) -> None:
        assert message.find_id(line) == id

    @pytest.mark.parametrize(
        ("prefix", "id"),
        [
            (b'{"jsonrpc":"2.0","id":7,"method":"m","params":{"text":"aaa', b"7"),
            (b'{"jsonrpc":"2.0","method":"m","id":"seven","params":{"te', b'"seven"'),
            (b'  { "jsonrpc" : "2.0" , "id" : 7 , "params" : [', b"7"),
            (b'{"id":"a,}\\"b","params":{"', b'"a,}\\"b"'),
            (b'{"id":"{","params":{"', b'"{"'),
            (b'{"method":"{ \\"id\\":5,","id":6,"par', b"6"),
            (b'{"id":null,"params":{"', b"null"),
            (b'{"id":true,"params":{"', b"null"),
            (b'{"id":1.5,"params":{"', b"1.5"),
            (b'{"id":12345678901234567890123,"params":{"', b"12345678901234567890123"),
        ],
    )
    @pytest.mark.rule("G-143")
    def test_the_id_of_a_message_that_was_cut_off(self, prefix: bytes, id: bytes) -> None:
        assert message.find_id_in_prefix(prefix) == id

    @pytest.mark.parametrize(
        "prefix",
        [
            b"",
            b"{",
            b"xxxxxxxx",
            b'"id":1,',
            b'[{"id":1,"method":"m"}',
            b'{"id":1',  # perhaps 12
            b'{"id":"ab',
            b'{"id":{"a":1},',
            b'{"method":"m","params":{"id":9,"text":"',
            b'{"params":[{"id":9},',
            b'{"text":"\\"id\\":5,',
            b'{"text":"{\\"id\\":5}',
        ],
    )
    @pytest.mark.rule("G-143")
    def test_what_may_be_something_else_is_not_taken_for_the_id(self, prefix: bytes) -> None:
        assert message.find_id_in_prefix(prefix) == b"null"

    @pytest.mark.parametrize(
        ("prefix", "response"),
        [
            (b'{"jsonrpc":"2.0","id":7,"result":{"content":"aaa', True),
            (b'{"jsonrpc":"2.0","id":7,"error":{"message":"aaa', True),
            (b'{"jsonrpc":"2.0","result":"aaa', True),
            (b'{"jsonrpc":"2.0","id":7,"method":"m","params":{"result":1,', False),
            (b'{"jsonrpc":"2.0","id":7,"params":{"result":1},"result":{}', False),
            (b'{"jsonrpc":"2.0","method":"\\"result\\":1', False),
            (b'[{"result":1', False),
            (b"", False),
        ],
    )
    def test_the_beginning_of_a_response_is_told_from_that_of_a_request(
        self, prefix: bytes, response: bool
    ) -> None:
        assert message.is_response_prefix(prefix) is response


class TestMembers:
    def test_values_stay_as_they_were_written(self) -> None:
        members = message.members(b'{"a": 1.0 ,"b":{"c":1e2},"d":null,"e":"\\u0061"}')
        assert {name: bytes(raw) for name, raw in members.items()} == {
            "a": b"1.0",
            "b": b'{"c":1e2}',
            "d": b"null",
            "e": b'"\\u0061"',
        }

    def test_null_counts_as_an_object_without_members(self) -> None:
        assert message.members(b"null") == {}

    @pytest.mark.parametrize("raw", [b"[]", b"1", b'"x"', b"{", DEEP])
    def test_anything_but_an_object_is_malformed(self, raw: bytes) -> None:
        with pytest.raises(Malformed):
            message.members(raw)


class TestEncode:
    def test_requests_take_our_counter_or_a_raw_id(self) -> None:
        assert message.request(3, "a/b", b"{}") == b'{"jsonrpc":"2.0","id":3,"method":"a/b","params":{}}'
        assert exact(message.request(b'"3"', "m", b"[]"))["id"] == "3"

    @given(encoded(OBJECTS), encoded(VALUES))
    def test_what_we_write_we_read_the_same(self, params: bytes, result: bytes) -> None:
        assert bytes(message.decode(message.request(1, "m", params)).params) == params
        assert bytes(message.decode(message.notification("m", params)).params) == params
        assert bytes(message.decode(message.response(b"null", result)).result) == result
        assert bytes(message.decode(message.failure(b'"x"', params)).error) == params

    @pytest.mark.parametrize("method", ["session/prompt", "_x.y/z", 'quo"te', "ü\n\\", "$/cancel_request"])
    def test_method_names_are_escaped(self, method: str) -> None:
        assert message.decode(message.request(1, method, b"{}")).method == method
        assert b"\n" not in message.notification(method, b"{}")
