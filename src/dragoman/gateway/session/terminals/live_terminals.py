"""Output of running terminals, for the journal and for clients that do not run the terminal themselves.

The journal gets the new output a few times a second; its readers join the pieces. A client is sent the tool call that
refers to the terminal, with the text so far in the terminal's place; that update is not journaled.

How much of a terminal's output is journaled while it runs is bounded. The rest, and a mark where the terminal itself
dropped output, is journaled when it ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dragoman.gateway.bounded_dict import BoundedDict
from dragoman.gateway.json_types import JsonObject, as_object
from dragoman.gateway.rewriting.updates import update_line
from dragoman.wire import limits

if TYPE_CHECKING:
    from dragoman.gateway.access.client import Client
    from dragoman.gateway.session.stream import Stream

INTERVAL = 0.25
"""Seconds between two looks at a terminal that runs."""
CLIENT_INTERVAL = 1.0
"""Seconds between two looks at a client's terminal: the client has to be asked for the output."""
SLACK = 0.05
"""Looks that are due within so many seconds are done together."""
LIVE_CHARACTERS = 256 * 1024
"""Characters journaled of one running terminal: a command that prints without end must not fill the journal."""
SHOWN_CHARACTERS = 16 * 1024
"""Characters from the end of the output that clients are sent, as a whole each time, while a terminal runs."""
ANCHOR = 256
"""Characters at the end of the journaled output, which locate it in the whole output."""
KNOWN_CALLS = 256
DROPPED = "\n[… earlier output was dropped …]\n"

ENDED_CALLS = ("completed", "failed")


@dataclass
class _Journaled:
    """How much of a terminal's output is in the journal."""

    interval: float = INTERVAL
    characters: int = 0
    end: str = ""
    over: bool = False

    def news(self, output: str) -> str | None:
        """The part of `output` not journaled yet; None if the journaled end is not in it any more."""
        if output[self.characters - len(self.end) : self.characters] == self.end:
            return output[self.characters :]
        place = output.rfind(self.end)
        return None if place < 0 else output[place + len(self.end) :]

    def add(self, text: str) -> None:
        self.characters += len(text)
        self.end = (self.end + text)[-ANCHOR:]


class LiveTerminals:
    def __init__(self, session: Stream, look: Callable[[str], bool]) -> None:
        """`look` reads a terminal's output so far, or asks its client; False when the terminal has ended or is gone."""
        self._session = session
        self._look = look
        self._running: dict[str, float] = {}
        """Running terminals, each with the time of the next look."""
        self._journaled: BoundedDict[_Journaled] = BoundedDict(limits.KNOWN_TERMINALS)
        self._calls: dict[str, JsonObject] = {}
        """The open tool call that refers to a terminal, by terminal."""
        self._timer: asyncio.TimerHandle | None = None

    def __contains__(self, terminal: object) -> bool:
        return terminal in self._running

    def begin(self, terminal: str, *, ours: bool) -> None:
        self._journaled[terminal] = _Journaled(INTERVAL if ours else CLIENT_INTERVAL)
        self._running[terminal] = asyncio.get_running_loop().time() + INTERVAL
        self._plan()

    def see_call(self, update: JsonObject) -> None:
        """Note which terminals a tool call refers to."""
        if not self._journaled:
            return
        call, entries = update.get("toolCallId"), update.get("content")
        content: list[object] = entries if isinstance(entries, list) else []
        for item in content:
            terminal = as_object(item).get("terminalId")
            if isinstance(terminal, str) and terminal in self._journaled:
                self._calls[terminal] = {"toolCallId": call, "content": list(content)}
        if len(self._calls) > KNOWN_CALLS:
            del self._calls[next(iter(self._calls))]
        if update.get("status") in ENDED_CALLS:
            self._calls = {
                terminal: shown for terminal, shown in self._calls.items() if shown["toolCallId"] != call
            }

    def tell(self, terminal: str, output: str, ends: JsonObject, runner: Client | None) -> None:
        """Journal new output, and send it to the clients except `runner`; `ends` has the exit status, if any.

        The output of a terminal for which `begin` was not called is journaled by `end` alone.
        """
        journaled = self._journaled.get(terminal)
        over = "exitStatus" in ends
        if journaled is None or journaled.over:
            return
        news = journaled.news(output)
        if over:
            self._running.pop(terminal, None)
            journaled.over = True
            self._record(terminal, journaled, DROPPED + output if news is None else news, ends)
        elif news and journaled.characters + len(news) <= LIVE_CHARACTERS:
            self._record(terminal, journaled, news, {})
        elif not news:
            return
        self._show(terminal, output, runner)

    def end(self, terminal: str, output: str | None, ends: JsonObject) -> None:
        """Journal the rest of the output of a terminal that was released."""
        self._running.pop(terminal, None)
        journaled = self._journaled.pop(terminal, _Journaled())
        if output is not None and not journaled.over:
            news = journaled.news(output)
            self._record(terminal, journaled, DROPPED + output if news is None else news, ends)
            self._show(terminal, output, None)
        self._calls.pop(terminal, None)

    def close(self) -> None:
        self._running.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _record(self, terminal: str, journaled: _Journaled, news: str, ends: JsonObject) -> None:
        journaled.add(news)
        self._session.record("terminal_output", terminalId=terminal, output=news, **ends)

    def _show(self, terminal: str, output: str, runner: Client | None) -> None:
        """Send the output to clients that do not run the terminal."""
        call = self._calls.get(terminal)
        if call is None:
            return
        text = output if len(output) <= SHOWN_CHARACTERS else "…" + output[-SHOWN_CHARACTERS:]
        content = [
            {"type": "content", "content": {"type": "text", "text": text}}
            if as_object(item).get("terminalId") == terminal
            else item
            for item in call["content"]
        ]
        update = {"sessionUpdate": "tool_call_update", "toolCallId": call["toolCallId"], "content": content}
        line = update_line(self._session.id, update)
        for attachment in self._session.attachments:
            if attachment.client is not runner:
                attachment.show_passing(line)

    def _plan(self) -> None:
        if self._timer is None and self._running:
            self._timer = asyncio.get_running_loop().call_at(min(self._running.values()), self._tick)

    def _tick(self) -> None:
        self._timer = None
        now = asyncio.get_running_loop().time()
        for terminal in [name for name, due in self._running.items() if due <= now + SLACK]:
            journaled = self._journaled.get(terminal)
            if journaled is not None and self._look(terminal):
                self._running[terminal] = now + journaled.interval
            else:
                self._running.pop(terminal, None)
        self._plan()
