"""JSON values made of bytes: any bytes make one, and a small change of the bytes is a small change of the value."""

from __future__ import annotations

from typing import Any

WORDS = (
    "sessionUpdate", "sessionId", "update", "content", "type", "text", "toolCall", "toolCallId", "title",
    "kind", "status", "rawInput", "rawOutput", "locations", "path", "line", "entries", "priority",
    "availableCommands", "name", "description", "input", "hint", "currentModeId", "currentModelId",
    "configOptions", "options", "optionId", "id", "value", "_meta", "dragoman", "terminal_output",
    "terminal_info", "terminal_exit", "data", "exitCode", "signal", "oldText", "newText", "used", "size",
    "cost", "currency", "amount", "resource", "uri", "mimeType", "image", "audio", "blob", "resource_link",
    "mcpServers", "command", "args", "env", "headers", "url", "http", "sse", "stdio", "messageId", "plan",
    "terminalId", "agent_message_chunk", "agent_thought_chunk", "user_message_chunk", "tool_call",
    "tool_call_update", "available_commands_update", "current_mode_update", "current_model_update",
    "config_option_update", "usage_update", "session_info_update", "pending", "in_progress", "completed",
    "failed", "diff", "terminal", "edit", "execute", "read", "allow_once", "allow_always", "reject_once",
    "reject_always", "question", "decision", "permission", "outcome", "selected", "cancelled", "stopReason",
    "end_turn", "error", "code", "message", "params", "result", "state", "by", "client", "queue", "notice",
    "turn_ended", "agent_exited", "revived", "parked", "setting", "elicitation", "mode", "model", "models",
    "modes", "USD", "", "\x00", "\ud7ff\u2028", "/etc/passwd", "file:///w/a", "-1", "1e400", "boolean",
    "select", "string", "assistant", "user", "stream_event", "event", "content_block_start",
    "content_block_delta", "content_block", "delta", "message_start", "tool_use", "tool_result",
    "tool_use_id", "thinking", "text_delta", "thinking_delta", "input_json_delta", "partial_json",
    "tool_progress", "parent_tool_use_id", "is_error", "Bash", "Edit", "Read", "Write", "TodoWrite",
    "todos", "activeForm", "file_path", "old_string", "new_string", "item/started", "item/completed",
    "item", "commandExecution", "fileChange", "changes", "agentMessage", "reasoning", "mcpToolCall",
    "aggregatedOutput", "commandActions", "turn/plan/updated", "step", "thread/tokenUsage/updated",
    "tokenUsage", "last", "total", "item/agentMessage/delta", "itemId", "item/commandExecution/outputDelta",
    "summary", "webSearch", "query", "imageView", "dynamicToolCall", "collabAgentToolCall", "add", "delete",
    "unified_diff", "move_path", "prompt", "MultiEdit", "edits", "Task", "Glob", "Grep",
)  # fmt: skip
NUMBERS = (0, 1, -1, 2**31, 2**53 + 1, -(2**63), 2**64, 0.5, -0.0, 1e308)
DEEPEST = 6


class Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._place = 0

    def byte(self) -> int:
        self._place += 1
        return self._data[self._place - 1] if self._place <= len(self._data) else 0

    def word(self) -> str:
        index = self.byte()
        return (
            WORDS[index]
            if index < len(WORDS)
            else chr(self.byte() << 4 | index & 15).encode("utf-8", "replace").decode()
        )

    def value(self, depth: int = 0) -> Any:
        kind = self.byte()
        if depth < DEEPEST and kind >= 160:
            return {self.word(): self.value(depth + 1) for _ in range(kind % 8)}
        if depth < DEEPEST and kind >= 128:
            return [self.value(depth + 1) for _ in range(kind % 4)]
        if kind >= 24:
            return self.word()
        return NUMBERS[kind] if kind < len(NUMBERS) else (None, True, False)[kind % 3]

    def object(self) -> dict[str, Any]:
        return {self.word(): self.value(1) for _ in range(self.byte() % 10)}
