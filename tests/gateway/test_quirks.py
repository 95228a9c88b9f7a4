"""Corrections for what agents were seen to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dragoman.gateway.json_types import decode_object, encode
from dragoman.gateway.rewriting.quirks import Corrections, absolute_paths, mode_said, with_rpc_code
from dragoman.rpc.request import Reply
from support.agents.quirks import QUIRKS

ALL = Path(__file__).parents[1]
TESTS = [
    Path(__file__),
    *(ALL / "acp" / f"test_{name}.py" for name in ("quirks", "bad_input", "sessions")),
    ALL / "sessions" / "test_revival.py",
]


def test_every_quirk_names_who_was_seen_and_a_test_that_exists() -> None:
    written = "".join(file.read_text() for file in TESTS)
    for quirk in QUIRKS:
        assert all(any(char.isdigit() for char in seen) for seen in quirk.seen), quirk
        assert f"def {quirk.test}(" in written, quirk


def test_the_reference_lists_them_all() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "quirks.md").read_text()
    for quirk in QUIRKS:
        assert f"| `{quirk.name}` | {', '.join(quirk.seen)} | {quirk.fact} |" in page


@pytest.mark.parametrize(
    ("code", "becomes"),
    [
        (400, -32603),
        (401, -32000),
        (500, -32603),
        (1001, -32603),
        (-32002, -32002),
        (-32800, -32800),
        (4711, 4711),
    ],
)
def test_error_codes_become_json_rpcs(code: int, becomes: int) -> None:
    reply = with_rpc_code(Reply(error=encode({"code": code, "message": "no", "data": {"a": 1}})))
    error = decode_object(reply.error)
    assert (error["code"], error["message"]) == (becomes, "no")
    assert error["data"] == ({"a": 1} if code == becomes else {"a": 1, "code": code})


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("[MODE_UPDATE] yolo", "yolo"),
        ("[MODE_UPDATE] plan\n", "plan"),
        ("I saw [MODE_UPDATE] yolo there", None),
    ],
)
def test_only_a_chunk_that_says_nothing_else_is_a_mode(text: str, mode: str | None) -> None:
    assert mode_said({"content": {"type": "text", "text": text}}) == mode


def told(**meta: Any) -> dict[str, Any]:
    terminal = {"type": "terminal", "terminalId": "t1"}
    return {"sessionUpdate": "tool_call_update", "toolCallId": "t1", "content": [terminal], "_meta": meta}


def test_terminal_output_in_meta_becomes_content() -> None:
    corrections = Corrections()
    first, last = told(terminal_output_delta={"data": "bui"}), told(terminal_output_delta={"data": "lt\n"})
    last["_meta"]["terminal_exit"] = {"exit_code": 2}
    assert corrections.terminal_text(first)
    assert corrections.terminal_text(last)
    assert first["content"][0]["content"]["text"] == "```console\nbui\n```"
    assert last["content"][0]["content"]["text"] == "```console\nbuilt\nexit code 2\n```"
    assert len(last["content"]) == 1


def test_the_paths_of_a_tool_call_are_absolute() -> None:
    paths = ("src/a.py", "./b.py", "/w/c.py", "../d.py")
    diffs = [{"type": "diff", "path": path, "newText": ""} for path in paths]
    places: list[Any] = [{"path": path, "line": 3} for path in paths]
    update = {"sessionUpdate": "tool_call_update", "content": diffs, "locations": [*places, None, {}]}
    assert absolute_paths(update, "/w")
    whole = ["/w/src/a.py", "/w/b.py", "/w/c.py", "/d.py"]
    assert [each["path"] for each in diffs] == [each["path"] for each in places] == whole
    assert not absolute_paths(update, "/w")


def status(kind: str) -> dict[str, Any]:
    return {"sessionUpdate": "session_info_update", "_meta": {"codex": {"threadStatus": {"type": kind}}}}


def test_an_end_turn_that_was_a_failure_is_reported_as_one() -> None:
    corrections = Corrections()
    done = Reply(result=b'{"stopReason":"end_turn"}')
    corrections.turn_begins()
    corrections.follow_status(status("active"))
    assert not corrections.failed(done)
    corrections.follow_status(status("systemError"))
    assert corrections.failed(done)
    assert not corrections.failed(Reply(result=b'{"stopReason":"cancelled"}'))
    corrections.turn_begins()
    assert not corrections.failed(done)
