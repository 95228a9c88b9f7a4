"""Open tool calls: none is left spinning."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from dragoman.gateway.session.open_tools import OpenTools


def call(tool_id: str = "t", **members: Any) -> dict[str, Any]:
    return {"sessionUpdate": "tool_call", "toolCallId": tool_id, **members}


def change(tool_id: str = "t", **members: Any) -> dict[str, Any]:
    return {"sessionUpdate": "tool_call_update", "toolCallId": tool_id, **members}


def failed(*tool_ids: str) -> list[dict[str, Any]]:
    return [change(tool_id, status="failed") for tool_id in tool_ids]


@pytest.mark.parametrize(
    ("seen", "open_ids"),
    [
        ([call()], ["t"]),
        ([call(status="pending")], ["t"]),
        ([call("a"), call("b"), call("a")], ["a", "b"]),
        ([call(), change(status="in_progress")], ["t"]),
        ([call(), change(title="x")], ["t"]),
        ([call(), change(status="completed")], []),
        ([call(), change(status="failed")], []),
        ([call(status="completed")], []),
        ([change(status="pending")], ["t"]),  # gemini asks before it says that there is a tool call
        ([{"toolCallId": "t", "status": "pending"}], ["t"]),
        ([{"toolCallId": "t", "title": "x"}], []),
        ([change(title="late")], []),
        ([call(), change(status="completed"), change(content=[])], []),
        ([{}, {"toolCallId": None}, {"toolCallId": 5}], []),
    ],
)
@pytest.mark.rule("G-110")
def test_what_is_open_can_be_closed(seen: list[dict[str, Any]], open_ids: list[str]) -> None:
    tools = OpenTools()
    for each in seen:
        tools.see(each)
    assert len(tools) == len(open_ids)
    assert tools.fail_all() == failed(*open_ids)
    assert len(tools) == 0
    assert tools.fail_all() == []


def test_a_call_that_a_hook_told_of_is_recorded_at_the_end_if_the_agent_did_not_tell_of_it() -> None:
    tools = OpenTools()
    recorded: list[str] = []
    tools.see(call("before"))
    for name in ("before", "told", "untold"):
        tools.expect(name, partial(recorded.append, name))
    tools.see(call("told"))
    assert not recorded
    tools.fail_all()
    tools.fail_all()
    assert recorded == ["untold"]
