"""The line below the editor: what is being done, the model, the context, the cost."""

from __future__ import annotations

import time
from collections.abc import Sequence

from dragoman.cli.chat.commands.options import find_option, lacks_model
from dragoman.cli.chat.lines.markdown import one_line
from dragoman.client import InfoChanged, Usage
from dragoman.wire.json_types import JsonObject, own_meta

SLOW_START = 1.0
"""Seconds after which it is told for how long a start takes."""
TOLD_ERROR = 40
"""Characters shown of why an agent tries again."""


class Status:
    def __init__(self) -> None:
        self.phase = "starting"
        """What is being done before there is a session; empty then."""
        self.usage: Usage | None = None
        self._since = time.monotonic()
        self._retrying = ""

    def begin(self, phase: str = "") -> None:
        """Count the seconds from now on: of a phase, or of a turn."""
        self.phase, self._since, self._retrying = phase, time.monotonic(), ""

    def opened(self) -> None:
        self.begin()
        self.usage = None

    def told(self, event: InfoChanged) -> None:
        """Learn that the agent asks its model again, from `_meta.dragoman` of an update."""
        facts = own_meta(dict(event.raw))
        if facts.get("state") != "retrying":
            return
        attempt, most = facts.get("attempt"), facts.get("maxRetries")
        count = f" {attempt}" + (f" of {most}" if most else "") if attempt else ""
        why = facts.get("status") or facts.get("error")
        self._retrying = f"retrying{count}" + (f": {one_line(str(why))[:TOLD_ERROR]}" if why else "")

    def goes_on(self) -> None:
        """The agent answers again."""
        self._retrying = ""

    def text(self, agent: str, options: Sequence[JsonObject], *, busy: bool, waiting: bool) -> str:
        seconds = time.monotonic() - self._since
        if self.phase:
            return f"{self.phase}…" + (f" {seconds:.0f} s" if seconds >= SLOW_START else "")
        parts = [agent or "session"]
        option = find_option(options, "model")
        if option is not None:
            parts.append("no model" if lacks_model(option) else one_line(str(option.get("currentValue"))))
        usage = self.usage
        if usage is not None and usage.used and usage.size:
            parts.append(f"{100 * usage.used // usage.size} % of context")
        if usage is not None and usage.cost:
            parts.append(f"${usage.cost:.2f}")
        if busy:
            if self._retrying:
                parts.append(self._retrying)
            parts.append(f"working {seconds:.0f} s, Ctrl-C cancels")
            if waiting:
                parts.append("Ctrl-S steers")
        else:
            parts.append("Enter sends, /help")
        return " · ".join(parts)
