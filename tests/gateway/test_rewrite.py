"""Session ids in requests, results and errors: the named members change and nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from dragoman.gateway.rewriting.rewrite import (
    one_session,
    reply_for_client,
    session_of,
    with_members,
    with_session,
    without_session,
)
from dragoman.rpc.request import Reply
from support.exact_json import exact
from support.json_values import OBJECTS, encoded


def result(raw: bytes) -> bytes:
    return reply_for_client(Reply(result=raw), "agent-1", "dgm_x").result


def error(value: object) -> Any:
    return json.loads(reply_for_client(Reply(error=json.dumps(value).encode()), "agent-1", "dgm_x").error)


TWICE = [
    b'{"sessionId":"dgm_other","a":1,"sessionId":"agent-1"}',
    b'{"sessionId":"dgm_other","sessi\\u006fnId":"agent-1"}',
    b'{"\\u0073essionId":"dgm_other","sessionId":"agent-1"}',
    b'{ "sessionId" : "dgm_other" , "sessionId" : "agent-1" }',
]


@pytest.mark.parametrize("raw", TWICE)
def test_of_two_session_ids_only_ours_is_left(raw: bytes) -> None:
    assert session_of(raw) == "agent-1"
    for shown in (with_session(raw, "dgm_x"), result(raw), one_session(raw), without_session(raw)):
        assert b"dgm_other" not in shown
        assert b"\\u00" not in shown
    data = b'{"code":1,"message":"m","data":%b}' % raw
    assert b"dgm_other" not in reply_for_client(Reply(error=data), "agent-1", "dgm_x").error
    other = data.replace(b"agent-1", b"third")
    assert b"dgm_other" not in reply_for_client(Reply(error=other), "agent-1", "dgm_x").error
    assert b"dgm_other" not in result(raw.replace(b"agent-1", b"third"))


def test_params_that_name_one_session_pass_as_they_are() -> None:
    for raw in (b'{"sessionId":"a", "x": {"y": 1.0}}', b"[1, 2]", b"null", b'{"t":"\\u001b[0m"}'):
        assert one_session(raw) is raw


class TestParams:
    @given(encoded(OBJECTS))
    @pytest.mark.rule("G-002")
    def test_only_the_session_id_changes(self, params: bytes) -> None:
        assert exact(with_session(params, "dgm_x")) == {**exact(params), "sessionId": "dgm_x"}

    def test_several_members_can_change(self) -> None:
        assert exact(with_members(b'{"a":1.0,"b":2,"c":null}', b=None, d=[1])) == {
            **exact(b'{"a":1.0,"c":null,"b":null}'),
            "d": exact(b"[1]"),
        }

    @pytest.mark.parametrize(
        ("params", "session"),
        [
            (b'{"sessionId":"a"}', "a"),
            (b'{"sessionId":"\\u0061","x":{"sessionId":"b"}}', "a"),
            (b'{"sessionId":""}', ""),
            (b'{"x":{"sessionId":"b"}}', None),
            (b'{"sessionId":1}', None),
            (b'{"sessionId":null}', None),
            (b'{"sessionId":{}}', None),
            (b"[]", None),
            (b"null", None),
            (b'"sessionId"', None),
        ],
    )
    def test_the_session_that_params_name(self, params: bytes, session: str | None) -> None:
        assert session_of(params) == session


class TestResults:
    @pytest.mark.rule("G-043")
    def test_the_agents_id_becomes_the_clients(self) -> None:
        assert exact(result(b'{"sessionId":"agent-1","n":1.0,"x":null}')) == exact(
            b'{"sessionId":"dgm_x","n":1.0,"x":null}'
        )

    @pytest.mark.parametrize(
        "raw",
        [
            b"null",
            b"{}",
            b"[1.0]",
            b'"sessionId"',
            b'{"x":{"sessionId":"agent-1"}}',
            b'{"_meta":{"sessionId":"agent-1"},"t":"agent-1"}',
            b'{"sessionId":"somebody-else"}',
            b'{"sessionId":null}',
            b'[{"sessionId":"agent-1"}]',
        ],
    )
    @pytest.mark.rule("G-043")
    def test_anything_else_passes_byte_by_byte(self, raw: bytes) -> None:
        assert result(raw) == raw


class TestErrors:
    @pytest.mark.parametrize(
        "value",
        [
            {"code": -32601, "message": "Method not found", "data": {"method": "x"}},
            {"code": -32603, "message": "boom", "data": {"sessionId": "other", "n": None}},
            {"code": -32000, "message": "Authentication required"},
            {"code": 5, "message": "agent-1", "data": "agent-1"},
            {"code": -32602, "message": "Unknown model"},
            {},
        ],
    )
    @pytest.mark.rule("G-020")
    def test_an_error_passes_as_it_is(self, value: object) -> None:
        assert error(value) == value

    @pytest.mark.parametrize("raw", [b"null", b"[]", b'"broken"', b"17"])
    def test_an_error_that_is_no_object_passes_as_it_is(self, raw: bytes) -> None:
        assert reply_for_client(Reply(error=raw), "agent-1", "dgm_x").error == raw

    @pytest.mark.rule("G-020", "G-043")
    def test_the_session_id_in_its_data_is_the_clients(self) -> None:
        value = {"code": -32603, "message": "m", "data": {"sessionId": "agent-1", "x": 1}}
        assert error(value)["data"] == {"sessionId": "dgm_x", "x": 1}

    @pytest.mark.parametrize(
        ("code", "message"),
        [
            (-32001, "Session not found"),
            (-32602, "Unknown session: agent-1"),
            (-32000, "session agent-1 does not exist"),
            (-32603, "Invalid session ID"),
            (-32000, "No such session"),
            (-32602, "SESSION EXPIRED"),
        ],
    )
    @pytest.mark.rule("G-045")
    def test_a_lost_session_is_told_by_its_proper_code_with_the_original(
        self, code: int, message: str
    ) -> None:
        """D-100."""
        assert error({"code": code, "message": message, "data": {"k": 1}}) == {
            "code": -32002,
            "message": message,
            "data": {
                "k": 1,
                "sessionId": "dgm_x",
                "original": {"code": code, "message": message, "data": {"k": 1}},
            },
        }

    @pytest.mark.parametrize(
        ("code", "message"),
        [
            (-32000, "Authentication required"),
            (-32602, "model not found"),
            (-32601, "session not found"),
            (-32603, "Session is busy"),
            (-32603, "the obsession is unknown"),
        ],
    )
    def test_other_errors_are_not_taken_for_a_lost_session(self, code: int, message: str) -> None:
        assert error({"code": code, "message": message})["code"] == code
