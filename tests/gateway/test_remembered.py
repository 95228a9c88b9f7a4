"""Names that a peer chose are remembered within bounds."""

from __future__ import annotations

from dragoman.gateway.bounded_dict import BoundedDict
from dragoman.gateway.rewriting.quirks import Corrections
from dragoman.gateway.session.open_tools import OpenTools
from dragoman.wire import limits


def test_the_oldest_are_forgotten_first() -> None:
    known: BoundedDict[int] = BoundedDict(2)
    for number, name in enumerate("abac"):
        known[name] = number
    assert known == {"b": 1, "c": 3}


def test_a_name_of_megabytes_is_not_remembered() -> None:
    known: BoundedDict[int] = BoundedDict(2)
    known["x" * (limits.PEER_ID_LENGTH + 1)] = 1
    known["x" * limits.PEER_ID_LENGTH] = 2
    assert list(known.values()) == [2]


def test_a_tool_call_that_has_ended_leaves_only_that_it_was_told() -> None:
    tools = OpenTools()
    for number in range(3):
        call = {"sessionUpdate": "tool_call", "toolCallId": f"t{number}", "kind": "execute"}
        tools.see({**call, "status": "pending"})
        tools.see({**call, "sessionUpdate": "tool_call_update", "status": "completed"})
    assert (len(tools), len(tools._since), tools.command_since()) == (0, 0, None)


def test_tool_calls_that_never_end_are_followed_up_to_a_bound() -> None:
    tools = OpenTools()
    for number in range(limits.OPEN_TOOL_CALLS + 5):
        tools.see({"sessionUpdate": "tool_call", "toolCallId": f"t{number}", "kind": "execute"})
    assert len(tools) == len(tools._since) == len(tools._told) == limits.OPEN_TOOL_CALLS
    assert tools.command_since() is not None
    assert tools.fail_all()[-1]["toolCallId"] == f"t{limits.OPEN_TOOL_CALLS + 4}"


def test_what_tool_calls_print_is_kept_for_the_last_of_them() -> None:
    corrections = Corrections()
    for number in range(limits.PRINTED_CALLS + 5):
        update = {"sessionUpdate": "tool_call_update", "toolCallId": f"t{number}"}
        corrections.terminal_text({**update, "_meta": {"terminal_output": "x" * 100}})
    assert len(corrections._printed) == limits.PRINTED_CALLS
