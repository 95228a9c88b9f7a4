"""Corrections for quirks of agents, so that all agents behave alike.

Each quirk has a row in `QUIRKS`: the agents with versions, the observed fact, and the test of its correction. A
correction that cannot harm an agent without the quirk is made for every agent, whatever its name.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

from dragoman.gateway.bounded_dict import BoundedDict
from dragoman.gateway.json_types import JsonObject, as_object, decode_object
from dragoman.rpc.request import Reply
from dragoman.wire import limits
from dragoman.wire.errors import AUTH_REQUIRED, INTERNAL_ERROR, Malformed, RpcError


@dataclass(frozen=True, slots=True)
class Quirk:
    name: str
    seen: tuple[str, ...]
    """Agents with the version in which the quirk was observed."""
    fact: str
    test: str
    """Name of a test in one of the files that tests/gateway/test_quirks.py lists."""


QUIRKS = (
    Quirk(
        "question_without_tool_call",
        ("gemini 0.61.0", "qwen 0.15.10"),
        "asks for permission for a tool call that was never announced",
        "test_a_tool_call_exists_before_its_question",
    ),
    Quirk(
        "tool_call_left_open",
        ("claude-agent-acp 0.49.0", "codex-acp 2.6.0", "gemini 0.61.0", "qwen 0.15.10"),
        "leaves a cancelled or rejected tool call pending for ever",
        "test_no_tool_call_is_left_open_when_the_turn_ends",
    ),
    Quirk(
        "mode_in_the_chat",
        ("gemini 0.61.0",),
        "says `[MODE_UPDATE] yolo` in the chat when its mode changes",
        "test_a_mode_that_is_said_in_the_chat_becomes_a_mode_update",
    ),
    Quirk(
        "terminal_in_meta",
        ("codex-acp 2.6.0",),
        "refers to terminals that were never created and puts their output into `_meta`",
        "test_terminal_output_in_meta_becomes_content",
    ),
    Quirk(
        "error_code_of_http",
        ("gemini 0.61.0", "codex-acp 2.6.0"),
        "answers with error codes that are not JSON-RPC's: 400, 401, 500, 1001",
        "test_error_codes_become_json_rpcs",
    ),
    Quirk(
        "command_runs_on",
        ("codex-acp 2.6.0",),
        "lets the command of a cancelled turn run on; it ends with its agent, which is resumed",
        "test_a_command_that_runs_on_after_cancel_ends_with_its_agent",
    ),
    Quirk(
        "killed_as_cancelled",
        ("qwen 0.24.4",),
        "runs behind a process of its own: when that is killed, it ends the turn as `cancelled`; here it is an error",
        "test_a_killed_agent_is_an_error_whatever_its_child_says",
    ),
    Quirk(
        "failure_as_end_turn",
        ("codex-acp 2.6.0",),
        "ends a turn that failed with `end_turn`; only `_meta.codex.threadStatus` says systemError",
        "test_an_end_turn_that_was_a_failure_is_reported_as_one",
    ),
    Quirk(
        "question_left_open",
        ("claude-agent-acp 0.49.0", "opencode 1.18.33"),
        "leaves a permission question open when its turn is cancelled",
        "test_a_question_that_is_left_open_is_withdrawn",
    ),
    Quirk(
        "cancel_waits_for_the_answer",
        ("gemini 0.61.0", "qwen 0.15.10"),
        "does not end a cancelled turn until its open question is answered",
        "test_an_agent_that_waits_for_an_answer_gets_one_at_cancel",
    ),
    Quirk(
        "second_prompt",
        ("claude-agent-acp 0.49.0", "codex-acp 2.6.0", "opencode 1.18.33", "gemini 0.61.0", "qwen 0.15.10"),
        "folds a second prompt into the first, queues it, or cancels the first; here it is refused",
        "test_a_second_prompt_is_refused_and_the_first_goes_on",
    ),
    Quirk(
        "one_vocabulary",
        ("opencode 1.18.33", "gemini 0.61.0", "claude-agent-acp 0.49.0"),
        "tells modes, models and options in one or two of three shapes; clients see all, models if they ask",
        "test_modes_models_and_options_are_told_in_all_words",
    ),
    Quirk(
        "fs_not_survived",
        ("gemini 0.61.0",),
        "fails to write a new file when reading it is answered with an error; it is not offered `fs`",
        "test_fs_is_not_offered_to_an_agent_that_does_not_survive_it",
    ),
    Quirk(
        "silent_retries",
        ("claude-agent-acp 0.49.0", "opencode 1.18.33"),
        "retries a failed request for minutes without a word; the session says that it is silent",
        "test_silence_is_shown_as_such",
    ),
    Quirk(
        "unknown_mode",
        ("qwen 0.15.10",),
        "accepts a mode that it does not offer, and has none then; the gateway refuses it",
        "test_a_mode_that_is_not_offered_is_refused_here",
    ),
    Quirk(
        "relative_diff",
        ("qwen 0.15.10",),
        "names the file of a diff or a location relative to the working folder; clients get the whole path",
        "test_the_paths_of_a_tool_call_are_absolute",
    ),
    Quirk(
        "failure_said_and_answered",
        ("claude-agent-acp 0.49.0",),
        "says the words of an API failure in the chat and answers with them; both are passed on",
        "test_a_failure_that_is_said_and_answered_is_one_error",
    ),
    Quirk(
        "text_said_again",
        ("codex-acp 2.6.0",),
        "says the beginning of an answer again when its stream broke; what was shown cannot be taken back",
        "test_text_that_is_said_again_is_shown_again",
    ),
    Quirk(
        "bypass_needs_a_sandbox",
        ("claude 2.1.325", "claude-agent-acp 0.49.0"),
        "offers root the mode `bypassPermissions` only with `IS_SANDBOX=1`, which is for the agent's `env`",
        "test_the_variables_of_an_agent_are_the_configurations",
    ),
    Quirk(
        "empty_prompt",
        ("gemini 0.61.0",),
        "never answers again after an empty prompt; the gateway refuses it",
        "test_an_empty_prompt_is_refused",
    ),
    Quirk(
        "relative_cwd",
        ("opencode 1.18.33", "qwen 0.15.10"),
        "accepts a working folder that is relative; the gateway refuses it",
        "test_a_cwd_that_is_not_absolute_is_refused",
    ),
    Quirk(
        "resume_in_vain",
        ("qwen 0.15.10",),
        "advertises `session/resume` and does not know the method; the session is loaded instead",
        "test_resume_that_is_advertised_in_vain_leads_to_the_next_rung",
    ),
    Quirk(
        "load_of_anything",
        ("qwen 0.15.10",),
        "loads an unknown session as an empty one; it is told the conversation so far",
        "test_an_agent_that_loads_an_empty_session_has_lost_it",
    ),
)

RESTARTABLE = 1001
"""Error code of codex-acp: the program that it runs could not be started."""
MODE_TEXT = b'{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"[MODE_UPDATE]'
"""Compared where the update begins in the raw line: a search through every chunk would cost a tenth of the time."""
MODE_AT = MODE_TEXT.index(b"[")
"""Offset of the one byte that rules out almost every other chunk."""
_MODE = re.compile(r"\s*\[MODE_UPDATE\]\s*(\S+)\s*")
FS_BREAKS = frozenset({"gemini"})
"""Matched by executable: capabilities are sent before the agent names itself."""
KEPT_OUTPUT = 30_000
"""Characters of a command's output that are sent as text: each update repeats them."""
CONSOLE = "```console\n"
"""First characters of the text of a command's output."""
_OUTPUT = ("terminal_output_delta", "terminal_output")
_TERMINAL = frozenset({*_OUTPUT, "terminal_info", "terminal_exit"})


class Corrections:
    """State of one session that the corrections need."""

    def __init__(self) -> None:
        self._printed: BoundedDict[str] = BoundedDict(limits.PRINTED_CALLS)
        self._failed = False

    def turn_begins(self) -> None:
        self._printed.clear()
        self._failed = False

    def failed(self, reply: Reply) -> bool:
        """Whether a turn that ended with `end_turn` has failed."""
        return self._failed and reply.ok and decode_object(reply.result).get("stopReason") == "end_turn"

    def follow_status(self, update: JsonObject) -> None:
        """Note a failed thread, which Codex reports in `_meta` of a `session_info_update`."""
        status = as_object(as_object(update.get("_meta")).get("codex")).get("threadStatus")
        if status is not None:
            kind = as_object(status).get("type", status)
            self._failed = kind == "systemError" or (self._failed and kind == "idle")

    def terminal_text(self, update: JsonObject) -> bool:
        """Add the output in the `_meta` of a tool call as text content; True if the call was edited."""
        tool, meta = str(update.get("toolCallId")), as_object(update.get("_meta"))
        if not tells_terminal(meta):
            return False
        code = as_object(meta.get("terminal_exit")).get("exit_code")
        printed = (self._printed.get(tool, "") + printed_in(meta))[-KEPT_OUTPUT:]
        self._printed[tool] = printed
        content = update.get("content")
        kept = [
            item
            for item in (content if isinstance(content, list) else [])
            if as_object(item).get("type") != "terminal"
        ]
        shown = printed.rstrip() + (f"\nexit code {code}" if code else "")
        if shown:
            block = {"type": "text", "text": f"{CONSOLE}{shown}\n```"}
            kept.append({"type": "content", "content": block})
        update["content"] = kept
        return True


def tells_terminal(meta: object) -> bool:
    """Whether this `_meta` of a tool call describes a command's terminal."""
    return isinstance(meta, dict) and not _TERMINAL.isdisjoint(meta)


def printed_in(meta: JsonObject) -> str:
    """The output in the `_meta` of a tool call."""
    told = next((meta[name] for name in _OUTPUT if name in meta), None)
    return told if isinstance(told, str) else str(as_object(told).get("data") or "")


def without_text(content: list[object]) -> tuple[list[object], list[object]]:
    """The content of a corrected tool call in two parts: all but the command's output, and that output as text."""
    shown: list[object] = []
    text: list[object] = []
    for item in content:
        block = as_object(as_object(item).get("content"))
        if str(block.get("text", "")).startswith(CONSOLE):
            text.append(item)
        elif as_object(item).get("type") != "terminal":
            shown.append(item)
    return shown, text


def absolute_paths(tool: JsonObject, cwd: str) -> bool:
    """Make the paths of a tool call's diffs and locations absolute, in place; True if one was relative."""
    changed = False
    for member in ("content", "locations"):
        items = tool.get(member)
        for item in items if isinstance(items, list) else ():
            path = item.get("path") if isinstance(item, dict) else None
            if not path or not isinstance(path, str) or path[0] == "/":
                continue
            if member == "locations" or item.get("type") == "diff":
                item["path"] = posixpath.normpath(posixpath.join(cwd, path))
                changed = True
    return changed


def survives_fs(command: Sequence[str]) -> bool:
    """Whether an agent may be offered `fs`; looks at two words, since the first may be an interpreter."""
    return not any(PurePath(word).stem in FS_BREAKS for word in command[:2])


def mode_said(update: JsonObject) -> str | None:
    """The mode that a text chunk announces, if it has no other text; else None."""
    text = as_object(update.get("content")).get("text")
    found = _MODE.fullmatch(text) if isinstance(text, str) else None
    return found[1] if found else None


def with_rpc_code(reply: Reply) -> Reply:
    """Replace an HTTP status used as error code by a JSON-RPC code; the agent's own code stays in `data.code`."""
    if reply.ok:
        return reply
    try:
        error = decode_object(reply.error)
    except Malformed:
        return reply
    code = error.get("code")
    if not isinstance(code, int) or (not 100 <= code <= 599 and code != RESTARTABLE):
        return reply  # JSON-RPC leaves other numbers to applications
    data = error.get("data")
    kept = {**(data if isinstance(data, dict) else {} if data is None else {"data": data}), "code": code}
    meant = AUTH_REQUIRED if code == 401 else INTERNAL_ERROR
    return Reply.failed(RpcError(meant, str(error.get("message") or "The agent failed"), kept))


def announcement(tool: JsonObject) -> JsonObject:
    """The `tool_call` that the agent should have sent before a question about it."""
    title = tool.get("title") or tool.get("toolCallId")
    return {"status": "pending", **tool, "sessionUpdate": "tool_call", "title": title}
