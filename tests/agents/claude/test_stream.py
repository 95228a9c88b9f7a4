"""Lines of `claude`, as observed, and the updates that they stand for."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.agents.claude.stream import Stream

Line = dict[str, Any]


def event(event: Line, parent: str | None = None) -> Line:
    return {"type": "stream_event", "event": event, "parent_tool_use_id": parent}


def message(role: str, *content: Line, id: str = "m1", **members: Any) -> Line:
    return {"type": role, "message": {"id": id, "role": role, "content": list(content)}, **members}


def tool_use(name: str, given: Line, id: str = "t1") -> Line:
    return {"type": "tool_use", "id": id, "name": name, "input": given}


def tool_result(content: Any, id: str = "t1", **members: Any) -> Line:
    return {"type": "tool_result", "tool_use_id": id, "content": content, **members}


def read(stream: Stream, *lines: Line) -> list[Line]:
    return [update for line in lines for update in stream.read(line)]


def texts(updates: list[Line], kind: str) -> str:
    return "".join(each["content"]["text"] for each in updates if each["sessionUpdate"] == kind)


START = event({"type": "message_start", "message": {"id": "m1"}})


@pytest.mark.rule("G-160")
@pytest.mark.parametrize(
    ("block", "member", "kind"),
    [("text", "text", "agent_message_chunk"), ("thinking", "thinking", "agent_thought_chunk")],
)
def test_what_was_streamed_is_not_said_again_by_the_whole_message(block: str, member: str, kind: str) -> None:
    deltas = [
        event({"type": "content_block_delta", "delta": {"type": f"{block}_delta", member: part}})
        for part in ("Hel", "lo")
    ]
    updates = read(Stream(), START, *deltas, message("assistant", {"type": block, member: "Hello"}))
    assert texts(updates, kind) == "Hello"
    assert len(updates) == 2


@pytest.mark.rule("G-160")
def test_text_that_was_not_streamed_is_said_by_the_whole_message() -> None:
    updates = read(Stream(), START, message("assistant", {"type": "text", "text": "Hello"}))
    assert texts(updates, "agent_message_chunk") == "Hello"


def delta(text: str) -> Line:
    return event({"type": "content_block_delta", "delta": {"type": "text_delta", "text": text}})


def nameless(*content: str) -> Line:
    blocks = [{"type": "text", "text": text} for text in content]
    return {"type": "assistant", "message": {"role": "assistant", "content": blocks}}


NAMELESS_START = event({"type": "message_start"})
NAMELESS_STOP = event({"type": "message_stop"})


@pytest.mark.parametrize(
    ("lines", "shown"),
    [
        ([NAMELESS_START, delta("Hel"), delta("lo"), nameless("Hello"), NAMELESS_STOP], "Hello"),
        ([NAMELESS_START, delta("One. "), nameless("One. "), NAMELESS_STOP, nameless("Two.")], "One. Two."),
        ([delta("One. "), nameless("One. "), nameless("Two."), nameless("Two.")], "One. Two.Two."),
        ([NAMELESS_START, delta("Hel"), nameless("Hello")], "Hello"),
        ([NAMELESS_START, delta("a"), delta("b"), nameless("a", "b", "c")], "abc"),
        ([NAMELESS_START, delta("lost "), NAMELESS_START, nameless("lost ")], "lost lost "),
        ([START, delta("Hello"), nameless("Hello"), NAMELESS_STOP, nameless("Hello")], "HelloHello"),
        ([NAMELESS_START, delta("Hello"), message("assistant", {"type": "text", "text": "Hello"})], "Hello"),
    ],
)
def test_no_text_of_a_message_without_an_id_is_lost_or_said_twice(lines: list[Line], shown: str) -> None:
    assert texts(read(Stream(), *lines), "agent_message_chunk") == shown


def test_an_api_error_is_not_put_into_the_agents_mouth() -> None:
    line = message("assistant", {"type": "text", "text": "API Error: 400"}, error="unknown")
    assert read(Stream(), line) == []


def test_what_a_sub_agent_says_is_not_shown_but_its_tools_are() -> None:
    stream = Stream()
    said = event({"type": "content_block_delta", "delta": {"type": "text_delta", "text": "x"}}, parent="t0")
    whole = message(
        "assistant",
        {"type": "text", "text": "x"},
        tool_use("Bash", {"command": "ls"}),
        parent_tool_use_id="t0",
    )
    (call,) = read(stream, said, whole)
    assert call["_meta"]["dragoman"]["parentToolCallId"] == "t0"


def test_a_tool_call_is_announced_then_described_then_ended() -> None:
    given = {"file_path": "/w/a.py", "offset": 12}
    begun = event({"type": "content_block_start", "content_block": tool_use("Read", {})})
    stream = Stream()
    announced, described, ended = read(
        stream,
        START,
        begun,
        message("assistant", tool_use("Read", given)),
        message("user", tool_result("12 x")),
    )
    assert (announced["sessionUpdate"], announced["status"], announced["kind"]) == (
        "tool_call",
        "pending",
        "read",
    )
    assert described["title"] == "Read /w/a.py"
    assert described["locations"] == [{"path": "/w/a.py", "line": 12}]
    assert described["rawInput"] == given
    assert ended["status"] == "completed"
    assert ended["rawOutput"] == "12 x"
    assert ended["content"] == [{"type": "content", "content": {"type": "text", "text": "12 x"}}]


@pytest.mark.rule("G-160")
@pytest.mark.parametrize("role", ["user", "assistant"])
@pytest.mark.parametrize("content", ["out", [{"type": "text", "text": "out"}]], ids=["string", "blocks"])
def test_a_result_may_stand_in_either_message_in_either_shape(role: str, content: Any) -> None:
    stream = Stream()
    (_, ended) = read(
        stream, message("assistant", tool_use("Grep", {"pattern": "x"})), message(role, tool_result(content))
    )
    assert ended["status"] == "completed"
    assert ended["content"] == [{"type": "content", "content": {"type": "text", "text": "out"}}]


def test_an_edit_shows_the_lines_that_really_changed() -> None:
    hunk = {"newStart": 7, "lines": [" same", "-old", "+new"]}
    detail = {"filePath": "/w/a", "structuredPatch": [hunk]}
    given = {"file_path": "/w/a", "old_string": "old", "new_string": "new"}
    asked, ended = read(
        Stream(),
        message("assistant", tool_use("Edit", given)),
        message("user", tool_result("ok"), tool_use_result=detail),
    )
    assert asked["content"] == [{"type": "diff", "path": "/w/a", "oldText": "old", "newText": "new"}]
    assert ended["content"] == [
        {"type": "diff", "path": "/w/a", "oldText": "same\nold", "newText": "same\nnew"}
    ]
    assert ended["locations"] == [{"path": "/w/a", "line": 7}]
    assert ended["rawOutput"] == detail


def test_a_new_file_is_a_diff_from_nothing_that_its_end_does_not_hide() -> None:
    given = {"file_path": "/w/new", "content": "x\n"}
    asked, ended = read(
        Stream(),
        message("assistant", tool_use("Write", given)),
        message("user", tool_result("created"), tool_use_result={"type": "create", "structuredPatch": []}),
    )
    assert asked["content"] == [{"type": "diff", "path": "/w/new", "oldText": None, "newText": "x\n"}]
    assert "content" not in ended


def test_a_command_shows_what_it_printed_and_a_refused_one_why() -> None:
    stream = Stream()
    run = message("assistant", tool_use("Bash", {"command": "make"}))
    detail = {"stdout": "built\n", "stderr": "warning\n"}
    call, ended = read(stream, run, message("user", tool_result("built"), tool_use_result=detail))
    assert (call["kind"], call["title"]) == ("execute", "make")
    assert call["content"] == ended["content"] == [{"type": "terminal", "terminalId": call["toolCallId"]}]
    assert ended["_meta"]["terminal_output"]["data"] == "built\nwarning"
    assert ended["_meta"]["terminal_exit"]["exit_code"] == 0
    broken = message("user", tool_result("Exit code 2\nno rule", is_error=True), tool_use_result="Error: x")
    _, failed = read(stream, run, broken)
    assert (failed["status"], failed["_meta"]["terminal_exit"]["exit_code"]) == ("failed", 2)
    refused = message("user", tool_result("no", is_error=True), tool_use_result="Error: no")
    _, ended = read(stream, run, refused)
    assert (ended["status"], ended["content"][0]["content"]["text"]) == ("failed", "no")


def test_todos_are_the_plan_and_no_tool_call() -> None:
    todos = [{"content": "dig", "status": "in_progress", "activeForm": "digging"}]
    begun = event({"type": "content_block_start", "content_block": tool_use("TodoWrite", {})})
    lines = message("assistant", tool_use("TodoWrite", {"todos": todos})), message("user", tool_result("ok"))
    assert read(Stream(), begun, *lines) == [
        {
            "sessionUpdate": "plan",
            "entries": [{"content": "dig", "priority": "medium", "status": "in_progress"}],
        }
    ]


def test_tasks_that_come_piece_by_piece_are_the_plan_as_well() -> None:
    stream = Stream()
    made = {"task": {"id": "1", "subject": "dig"}}
    (plan,) = read(
        stream,
        message("assistant", tool_use("TaskCreate", {"subject": "dig"})),
        message("user", tool_result("Task #1 created"), tool_use_result=made),
    )
    assert plan["entries"][0]["status"] == "pending"
    (plan,) = read(
        stream, message("assistant", tool_use("TaskUpdate", {"taskId": "1", "status": "completed"}))
    )
    assert plan["entries"] == [{"content": "dig", "priority": "medium", "status": "completed"}]


def test_no_tool_call_is_left_open_at_the_end_of_a_turn() -> None:
    stream = Stream()
    read(stream, message("assistant", tool_use("Bash", {"command": "sleep 9"})))
    assert stream.end_turn() == [
        {"sessionUpdate": "tool_call_update", "toolCallId": "t1", "status": "failed"}
    ]
    assert stream.end_turn() == []


def test_a_tool_that_is_asked_about_is_introduced_once() -> None:
    stream = Stream()
    (call,) = stream.introduce("t9", "Bash", {"command": "ls"})
    assert call["sessionUpdate"] == "tool_call"
    assert stream.introduce("t9", "Bash", {"command": "ls"}) == []


def test_a_transcript_shows_what_the_user_said_but_not_what_was_said_in_his_name() -> None:
    stream = Stream(replay=True)
    said = [{"type": "text", "text": text} for text in ("Hello", "<command-name>/model</command-name>")]
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}
    text, picture = read(stream, message("user", *said, image))
    assert text["content"] == {"type": "text", "text": "Hello"}
    assert picture["content"] == {"type": "image", "data": "AA==", "mimeType": "image/png"}
    assert read(Stream(), message("user", *said, image)) == []


@pytest.mark.parametrize(
    "line",
    [
        {},
        {"type": "assistant"},
        {"type": "assistant", "message": {"content": [None, 1, {"type": "novel"}]}},
        {"type": "stream_event", "event": None},
        {"type": "stream_event", "event": {"type": "content_block_delta", "delta": []}},
        {"type": "user", "message": {"content": [{"type": "tool_result"}]}},
        {"type": "rate_limit_event"},
    ],
)
def test_lines_of_another_shape_are_nothing(line: Line) -> None:
    assert Stream().read(line) == []
