"""What `dragoman exec` prints: the conversation as it happens, the last answer alone, or every message."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from dragoman.cli.terminal.narrator import Narrator
from dragoman.cli.terminal.progress import waiting
from dragoman.cli.terminal.screen import Screen
from dragoman.client.reading import chunk_text
from dragoman.gateway.json_types import JsonObject, encode


@dataclass(frozen=True, slots=True)
class Outcome:
    """How `dragoman exec` ended."""

    exit_code: int
    session_id: str | None = None
    stop_reason: str | None = None
    error: JsonObject | None = None
    """`code` and `message`."""
    kept: bool = True
    """The session can be continued later."""
    usage: JsonObject = field(default_factory=dict)
    """The turn's tokens, as the agent told them."""
    changes: list[JsonObject] = field(default_factory=list)
    """Files that the turn changed."""


class LastMessage:
    """The agent's last message: text before its last tool call is no answer."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._message: object = None
        self._complete = False

    def update(self, update: JsonObject) -> None:
        kind = update.get("sessionUpdate")
        if kind == "tool_call":
            self._complete = True
        elif kind == "agent_message_chunk":
            if self._complete or update.get("messageId") != self._message:
                self._parts = []
            self._complete, self._message = False, update.get("messageId")
            self._parts.append(chunk_text(update))

    @property
    def text(self) -> str:
        return "".join(self._parts)


class Output:
    """Shows nothing but the error at the end."""

    tells_changes = False
    """Whether it tells which files the turn changed."""

    def __init__(self) -> None:
        self.narrator = Narrator(Screen(sys.stdout, sys.stderr))

    def starting(self, agent: str) -> AbstractContextManager[None]:
        """Show that the agent starts, if it takes long."""
        return nullcontext()

    def message(self, line: bytes) -> None:
        """Take a message of the protocol, as it is on the wire."""

    def update(self, update: JsonObject) -> None:
        """Take an update of the session."""

    def note(self, text: str) -> None:
        """Show a remark to the user."""

    def finish(self, outcome: Outcome) -> None:
        self.narrator.screen.end_line()
        if outcome.error is not None:
            for line in str(outcome.error.get("message")).splitlines():
                self.narrator.screen.progress(f"dragoman: {line}", fg="red")


class Plain(Output):
    """The answer on stdout as it grows; thoughts and tool calls on stderr."""

    def starting(self, agent: str) -> AbstractContextManager[None]:
        return waiting(f"starting {agent}")

    def update(self, update: JsonObject) -> None:
        self.narrator.tell(update)

    def note(self, text: str) -> None:
        self.narrator.say(text, dim=True)

    def finish(self, outcome: Outcome) -> None:
        super().finish(outcome)
        if outcome.session_id is not None and outcome.kept:
            self.narrator.say(f"session {outcome.session_id}", dim=True)


class Quiet(Output):
    """Only the agent's last message, on stdout.

    Notices of the severity `error` go to stderr: the session is not saved, or events of it are lost.
    """

    def __init__(self) -> None:
        super().__init__()
        self._last = LastMessage()

    def update(self, update: JsonObject) -> None:
        self._last.update(update)
        if update.get("sessionUpdate") == "notice" and update.get("severity") == "error":
            self.narrator.tell(update)

    def finish(self, outcome: Outcome) -> None:
        self.narrator.screen.answer(self._last.text)
        super().finish(outcome)


class Ndjson(Output):
    """Every message that the client gets, one per line, and a last line with the result."""

    tells_changes = True

    def __init__(self) -> None:
        super().__init__()
        self._last = LastMessage()
        self._cost: object = None

    def update(self, update: JsonObject) -> None:
        self._last.update(update)
        if update.get("sessionUpdate") == "usage_update" and update.get("cost") is not None:
            self._cost = update["cost"]

    def finish(self, outcome: Outcome) -> None:
        result: JsonObject = {"type": "result", "sessionId": outcome.session_id, "text": self._last.text}
        if outcome.stop_reason is not None:
            result["stopReason"] = outcome.stop_reason
        else:
            result["error"] = outcome.error
        result |= {"usage": outcome.usage or None, "cost": self._cost, "changes": outcome.changes}
        self.message(encode({**result, "exitCode": outcome.exit_code}))

    def message(self, line: bytes) -> None:
        try:
            sys.stdout.buffer.write(line + b"\n")
            sys.stdout.buffer.flush()
        except OSError as error:
            self.narrator.screen.lost(sys.stdout, error)
