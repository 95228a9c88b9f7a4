"""Translates the output of `claude` into ACP updates, without IO (G-160).

Text and thinking come twice, as deltas and again in the complete `assistant` message that ends each block; the first
to come is shown. The message id links a complete message to its deltas; in older versions, which have no id, the text
itself does, so that nothing is lost. A tool call is announced when its block begins, described when its input is
complete, and ended by a `tool_result`, which may be in a `user` or in an `assistant` message (D-111). The text of a
sub-agent is not shown; its tool calls are, with their parent's id.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from dragoman.agents.claude import tools
from dragoman.agents.claude.plan import Plan
from dragoman.agents.native import terminal
from dragoman.wire.json_types import JsonObject

TOOL_USES = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
TOOL_RESULTS = frozenset(
    {"tool_result", "web_search_tool_result", "web_fetch_tool_result", "mcp_tool_result"}
)
INJECTED = ("[Request interrupted", "<command-", "<local-command-caveat>", "<system-reminder>", "Caveat: ")
"""Prefixes of text that the program itself added to the conversation as the user's."""
_COMMAND_OUTPUT = re.compile(
    r"<local-command-(?:stdout|stderr)>(.*?)</local-command-(?:stdout|stderr)>", re.DOTALL
)


@dataclass(slots=True)
class Call:
    name: str
    given: JsonObject
    described: bool = False


class Stream:
    def __init__(self, *, replay: bool = False) -> None:
        self._replay = replay
        """Whether a transcript is read: the user's messages are shown too."""
        self._plan = Plan()
        self._calls: dict[str, Call] = {}
        self._message = ""
        self._streamed: set[tuple[str, str]] = set()
        self._unmatched: dict[str, str] = {}
        """By kind: text of the last message's deltas whose complete block has not come yet."""
        self._readers: dict[str, Callable[[JsonObject], list[JsonObject]]] = {
            "stream_event": self._event,
            "assistant": self._message_of,
            "user": self._message_of,
            "tool_progress": self._progress,
        }

    def read(self, event: JsonObject) -> list[JsonObject]:
        """The updates for one line."""
        reader = self._readers.get(str(event.get("type")))
        return reader(event) if reader is not None else []

    def call(self, tool_id: str) -> Call | None:
        """A tool call that has not ended."""
        return self._calls.get(tool_id)

    def introduce(self, tool_id: str, name: str, given: JsonObject) -> list[JsonObject]:
        """Updates that announce a tool call before a permission question about it, unless already described."""
        known = self._calls.get(tool_id)
        return [] if known is not None and known.described else self._described(tool_id, name, given, None)

    def end_turn(self) -> list[JsonObject]:
        """Updates that fail all open calls at the end of a turn (claude leaves a cancelled one pending for ever)."""
        open_calls = [tool for tool, call in self._calls.items() if call.name not in tools.PLAN_TOOLS]
        self._calls.clear()
        self._streamed.clear()
        self._message, self._unmatched = "", {}
        return [
            {"sessionUpdate": "tool_call_update", "toolCallId": tool, "status": "failed"}
            for tool in open_calls
        ]

    # -- deltas

    def _event(self, line: JsonObject) -> list[JsonObject]:
        event = line.get("event")
        if not isinstance(event, dict) or line.get("parent_tool_use_id"):
            return []
        kind = event.get("type")
        if kind == "message_start":
            message = event.get("message")
            self._message = str(message.get("id") or "") if isinstance(message, dict) else ""
            self._unmatched.clear()
        elif kind == "message_stop":
            self._message = ""
        elif kind == "content_block_start":
            return self._block_begins(event.get("content_block"))
        elif kind == "content_block_delta":
            return self._delta(event.get("delta"))
        return []

    def _block_begins(self, block: object) -> list[JsonObject]:
        if not isinstance(block, dict) or str(block.get("type")) not in TOOL_USES:
            return []
        name, tool_id = str(block.get("name")), str(block.get("id"))
        if tool_id in self._calls:
            return []
        self._calls[tool_id] = Call(name, {})
        if name in tools.PLAN_TOOLS:
            return []
        shown = tools.describe(name, {})
        return [
            {"sessionUpdate": "tool_call", "toolCallId": tool_id, "status": "pending", **shown, **_meta(name)}
        ]

    def _delta(self, delta: object) -> list[JsonObject]:
        if not isinstance(delta, dict):
            return []
        for kind, member, update in (
            ("text_delta", "text", "agent_message_chunk"),
            ("thinking_delta", "thinking", "agent_thought_chunk"),
        ):
            if delta.get("type") == kind and delta.get(member):
                text = str(delta[member])
                if self._message:
                    self._streamed.add((self._message, member))
                self._unmatched[member] = self._unmatched.get(member, "") + text
                return [_chunk(update, text, self._message)]
        return []

    # -- whole messages

    def _message_of(self, line: JsonObject) -> list[JsonObject]:
        message = line.get("message")
        if not isinstance(message, dict):
            return []
        if message.get("role", line["type"]) == "user":
            reader = self._user_block
        else:
            if line.get("error"):
                return []  # the result reports it as an error; not the agent's text
            reader = self._assistant_block
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        updates: list[JsonObject] = []
        for block in blocks if isinstance(blocks, list) else []:
            if isinstance(block, dict):
                updates += reader(block, line, str(message.get("id") or ""))
        return updates

    def _assistant_block(self, block: JsonObject, line: JsonObject, message: str) -> list[JsonObject]:
        kind = str(block.get("type"))
        parent = line.get("parent_tool_use_id")
        if kind in TOOL_USES:
            given = block.get("input")
            return self._described(
                str(block.get("id")), str(block.get("name")), given if isinstance(given, dict) else {}, parent
            )
        if kind in TOOL_RESULTS:
            return self._ended(block, line.get("tool_use_result"))
        if parent or kind not in ("text", "thinking"):
            return []
        text = self._not_streamed(kind, str(block.get(kind) or ""))
        if (message, kind) in self._streamed:
            return []
        update = "agent_message_chunk" if kind == "text" else "agent_thought_chunk"
        return [_chunk(update, text, message)] if text else []

    def _not_streamed(self, kind: str, text: str) -> str:
        """The part of a complete block that its deltas did not have."""
        told = self._unmatched.pop(kind, "")
        if told.startswith(text):
            self._unmatched[kind] = told[len(text) :]
            return ""
        return text.removeprefix(told)

    def _user_block(self, block: JsonObject, line: JsonObject, message: str) -> list[JsonObject]:
        kind = str(block.get("type"))
        if kind in TOOL_RESULTS:
            return self._ended(block, line.get("tool_use_result"))
        if line.get("parent_tool_use_id"):
            return []
        if kind == "text":
            return self._user_text(str(block.get("text", "")), line)
        source = block.get("source")
        if kind == "image" and self._replay and isinstance(source, dict) and source.get("type") == "base64":
            image = {
                "type": "image",
                "data": source.get("data", ""),
                "mimeType": source.get("media_type", ""),
            }
            return [{"sessionUpdate": "user_message_chunk", "content": image}]
        return []

    def _user_text(self, text: str, line: JsonObject) -> list[JsonObject]:
        printed = _COMMAND_OUTPUT.findall(text)
        if printed:
            if self._replay or line.get("isReplay"):
                return []  # notes of `set_model` and others for the model, not for the user
            return [_chunk("agent_message_chunk", part.strip(), "") for part in printed if part.strip()]
        if not self._replay or not text or text.lstrip().startswith(INJECTED):
            return []
        return [{"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": text}}]

    # -- tool calls

    def _described(self, tool_id: str, name: str, given: JsonObject, parent: object) -> list[JsonObject]:
        known = self._calls.get(tool_id)
        self._calls[tool_id] = Call(name, given, described=True)
        if name in tools.PLAN_TOOLS:
            plan = self._plan.called(name, given)
            return [plan] if plan is not None else []
        kind = "tool_call" if known is None else "tool_call_update"
        status = {"status": "pending"} if known is None else {}
        shown = tools.describe(name, given)
        meta = _meta(name, parent)
        if name in tools.COMMANDS:
            begun = terminal.begun(tool_id)
            shown["content"] = [*begun["content"], *_described(given)]
            meta["_meta"] |= begun["_meta"]
        return [{"sessionUpdate": kind, "toolCallId": tool_id, **status, **shown, **meta}]

    def _ended(self, block: JsonObject, detail: object) -> list[JsonObject]:
        tool_id = str(block.get("tool_use_id"))
        call = self._calls.pop(tool_id, None)
        if call is None:
            return []  # already ended, or of a turn that was given up
        if call.name in tools.PLAN_TOOLS:
            plan = self._plan.answered(call.name, call.given, detail)
            return [plan] if plan is not None else []
        shown = tools.outcome(call.name, call.given, block, detail)
        code = tools.exit_code(block)
        if call.name in tools.COMMANDS and code is not None:
            printed = tools.command_output(detail, block.get("content"))
            shown |= terminal.ended(tool_id, printed, code)
        return [{"sessionUpdate": "tool_call_update", "toolCallId": tool_id, **shown}]

    def _progress(self, line: JsonObject) -> list[JsonObject]:
        tool_id = str(line.get("tool_use_id"))
        call = self._calls.get(tool_id)
        if call is None or call.name in tools.PLAN_TOOLS:
            return []
        return [{"sessionUpdate": "tool_call_update", "toolCallId": tool_id, "status": "in_progress"}]


def _described(given: JsonObject) -> list[JsonObject]:
    return [tools.text_content(str(given["description"]))] if given.get("description") else []


def _chunk(kind: str, text: str, message: str) -> JsonObject:
    update: JsonObject = {"sessionUpdate": kind, "content": {"type": "text", "text": text}}
    if message:
        update["messageId"] = message
    return update


def _meta(name: str, parent: object = None) -> JsonObject:
    own: JsonObject = {"toolName": name}
    if parent:
        own["parentToolCallId"] = parent
    return {"_meta": {"dragoman": own}}
