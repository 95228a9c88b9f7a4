"""The error codes of docs/reference/protocol-rules.md as they go out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.wire import errors
from dragoman.wire.errors import Malformed, RpcError


@pytest.mark.parametrize(
    ("error", "code", "data"),
    [
        (errors.invalid_request("m"), -32600, None),
        (errors.invalid_request("m", "prompt_in_flight"), -32600, {"reason": "prompt_in_flight"}),
        (errors.method_not_found("a/b"), -32601, {"method": "a/b"}),
        (errors.invalid_params("m"), -32602, None),
        (errors.invalid_params("m", "cwd", cwd="x"), -32602, {"reason": "cwd", "cwd": "x"}),
        (errors.internal("m", "agent_exited", exitCode=1), -32603, {"reason": "agent_exited", "exitCode": 1}),
        (errors.internal("m", exitCode=None), -32603, {"exitCode": None}),
        (errors.session_not_found("dgm_x"), -32002, {"sessionId": "dgm_x"}),
        (RpcError(errors.AUTH_REQUIRED, "m"), -32000, None),
        (RpcError(errors.CANCELLED, "m", []), -32800, []),
    ],
)
def test_an_error_is_encoded_with_its_code_message_and_data(error: RpcError, code: int, data: Any) -> None:
    encoded = json.loads(error.encode())
    assert encoded == {"code": code, "message": error.message} | ({} if data is None else {"data": data})


def test_an_unknown_session_is_named_and_may_say_what_to_do() -> None:
    assert errors.session_not_found("x").message == "Session not found: x"
    assert errors.session_not_found("x", "Load it").message == "Session not found: x. Load it"


def test_a_malformed_message_becomes_an_error_that_can_be_sent() -> None:
    malformed = Malformed(errors.PARSE_ERROR, "Parse error: x")
    assert malformed.id == b"null"
    assert json.loads(malformed.as_error().encode()) == {"code": -32700, "message": "Parse error: x"}


def test_errors_read_like_their_message() -> None:
    assert str(errors.internal("it broke")) == "it broke"
    assert str(Malformed(-32600, "it makes no sense")) == "it makes no sense"
