"""Turns the events of a session into lines: finished ones, which are printed once, and a tail that still changes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

from dragoman.cli.chat.lines.diff import diff_lines
from dragoman.cli.chat.lines.markdown import Line, Markdown, one_line, safe
from dragoman.client.events import (
    Event,
    Notice,
    Plan,
    Text,
    Thought,
    ToolStarted,
    ToolUpdated,
    TurnEnded,
    UserMessage,
)
from dragoman.client.reading import text_of
from dragoman.gateway.rewriting.tool_text import ToolContents, lines, said_already
from dragoman.wire.json_types import as_object, own_meta

OUTPUT_LINES = 20
"""Lines shown of a tool call's result."""
QUESTION_LINES = 60
"""Lines shown with a question: the user has to see a diff to judge it."""
TAIL_ROWS = 8
HISTORY_LINES = 200
"""Lines of an earlier conversation that are printed again."""
FAINT = "ansibrightblack"
SEVERITY = {"error": "ansired", "warning": "ansiyellow"}
PLAN_MARKS = {"completed": "✓", "in_progress": "▸"}


def last_lines(shown: list[Line], session: str) -> list[Line]:
    """The end of an earlier conversation, and where all of it is."""
    if len(shown) <= HISTORY_LINES:
        return shown
    told = f"… {len(shown) - HISTORY_LINES} lines before: dragoman sessions show {session}"
    return [[(FAINT, told)], *shown[-HISTORY_LINES:]]


class Transcript:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._finished: list[Line] = []
        self._markdown = Markdown()
        self._answer = ""
        """The unfinished last line of the agent's answer."""
        self._prompt = ""
        self._thought = ""
        self._thinking_since: float | None = None
        self._tools: dict[str, str] = {}
        """Titles of the running tool calls, by their ids."""
        self._ended: set[str] = set()
        self._asked: set[str] = set()
        """Calls whose diff a question has shown."""
        self._contents = ToolContents()
        self._said: list[str] = []
        """What the agent said since its last tool call before it."""
        self._said_over = False
        self._spaced = True
        """The last finished line is empty, or there is none."""

    # -- out

    def take_finished(self) -> list[Line]:
        """The lines that are finished since the last call."""
        taken, self._finished = self._finished, []
        return taken

    def finish(self) -> list[Line]:
        """All that is left, as finished lines."""
        self._flush()
        return self.take_finished()

    def tail(self, columns: int) -> list[Line]:
        """What still changes: the last words of a thought, the end of the unfinished line, the running tool calls."""
        shown: list[Line] = []
        if self._thinking_since is not None:
            last = safe(self._thought.rstrip().rpartition("\n")[2])[-max(10, columns - 4) :]
            shown.append([(f"{FAINT} italic", f"· {last}")])
        if self._answer:
            room = columns * TAIL_ROWS // 2
            cut = len(self._answer) > room
            shown.append([("", "…" if cut else ""), ("", safe(self._answer[-room:]))])
        titles = list(self._tools.values())[-TAIL_ROWS // 2 :]
        shown += [[("ansiyellow", "● "), ("", title), (FAINT, " …")] for title in titles]
        return shown

    @property
    def last_message(self) -> str:
        """What the agent said last."""
        return "".join(self._said).strip()

    # -- in

    def say(self, text: str, style: str = FAINT) -> None:
        """A line of our own."""
        self._flush()
        for part in text.split("\n"):
            self._line([(style, safe(part))])

    def show(self, lines: Iterable[Line]) -> None:
        """Lines of our own that are styled already."""
        self._flush()
        for line in lines:
            self._line(line)

    def prompted(self, text: str, into_turn: bool = False) -> None:
        """A prompt of the user, also one that goes into the running turn."""
        self._flush()
        self._said_over = True
        self._space()
        first, *rest = safe(text).split("\n")
        mark = "  (for the running turn)" if into_turn else ""
        self._line([("ansigreen bold", "> "), ("bold", first), (FAINT, mark)])
        for part in rest:
            self._line([("bold", f"  {part}")])
        self._space()

    def asked(self, title: str, id: str, shown: Sequence[str], notes: Iterable[str] = ()) -> None:
        """A question, with what it is about, a command or a diff, and why it is asked."""
        self._flush()
        self._asked.add(id)
        self._line([("ansiyellow bold", f"? {one_line(title)}")])
        self._output(shown, QUESTION_LINES)
        for note in notes:
            self._line([(f"{FAINT} italic", f"  {safe(note)}")])

    def take(self, event: Event) -> None:
        match event:
            case Text(text):
                self._end_thought()
                self._end_prompt()
                text = text or self._fence(event)
                self._say_more(text)
                self._add(text)
            case Thought(text):
                self._flush_answer()
                if self._thinking_since is None:
                    self._thinking_since = self._clock()
                self._thought = (self._thought + text)[-2000:]
            case UserMessage(text):
                self._flush_answer()
                self._end_thought()
                self._prompt += text
            case ToolStarted(id, title):
                self._flush()
                self._said_over = True
                self._tool(event, id, title, event.status)
            case ToolUpdated(id, title, status):
                self._tool(event, id, title, status)
            case Plan(steps):
                self._flush()
                for step in steps:
                    mark = PLAN_MARKS.get(step.status, "·")
                    self._line([(FAINT, f"  {mark} {safe(step.content)}")])
            case Notice(text, severity):
                self.say(f"! {text}", SEVERITY.get(severity, FAINT))
            case TurnEnded(stop_reason, error):
                self._ended_turn(stop_reason, error)
            case _:
                pass

    def _say_more(self, text: str) -> None:
        if self._said_over:
            self._said.clear()
            self._said_over = False
        self._said.append(text)

    def _add(self, text: str) -> None:
        *complete, self._answer = (self._answer + text).split("\n")
        for line in complete:
            self._line(self._markdown.line(line))

    def _fence(self, event: Event) -> str:
        """The Markdown fence that a chunk is, which events leave out: what is inside it is shown as it is."""
        if own_meta(dict(event.raw)).get("fence") is not True:
            return ""
        self._flush_answer()
        return text_of(event.raw.get("content"))

    def _tool(self, event: Event, id: str, title: str | None, status: str | None) -> None:
        if id in self._ended:
            return
        update = dict(event.raw)
        self._contents.see(update)
        known = one_line(title) if title else self._tools.get(id, "tool call")
        if status not in ("completed", "failed"):
            self._tools[id] = known
            return
        self._flush()
        self._tools.pop(id, None)
        self._ended.add(id)
        mark, style = ("✓", "ansigreen") if status == "completed" else ("✗ failed", "ansired")
        self._line([(style, "● "), ("", known), (style, f" {mark}")])
        content = self._contents.take(update)
        only_diffs = all(as_object(part).get("type") == "diff" for part in content)
        if not said_already(update) and not (id in self._asked and only_diffs):
            self._output(list(lines(content)), OUTPUT_LINES)

    def _output(self, shown: Sequence[str], most: int) -> None:
        for line in diff_lines(shown[:most]):
            self._line(line)
        if len(shown) > most:
            self._line([(FAINT, f"  … {len(shown) - most} more lines")])

    def _ended_turn(self, stop_reason: str, error: str | None) -> None:
        self._flush()
        for title in self._tools.values():
            self._line([(FAINT, f"● {title} (left open)")])
        self._tools.clear()
        self._ended.clear()
        self._asked.clear()
        self._markdown = Markdown()
        if error is not None:
            self.say(f"! {error}", "ansired")
        elif stop_reason != "end_turn":
            self.say(f"[{stop_reason}]")

    # -- lines

    def _flush(self) -> None:
        self._end_thought()
        self._end_prompt()
        self._flush_answer()

    def _flush_answer(self) -> None:
        if self._answer:
            rest, self._answer = self._answer, ""
            self._line(self._markdown.line(rest))

    def _end_thought(self) -> None:
        if self._thinking_since is not None:
            seconds = self._clock() - self._thinking_since
            self._thinking_since, self._thought = None, ""
            self._line(
                [(f"{FAINT} italic", f"· thought for {seconds:.0f} s" if seconds >= 1 else "· thought")]
            )

    def _end_prompt(self) -> None:
        if self._prompt:
            text, self._prompt = self._prompt, ""
            self.prompted(text)

    def _space(self) -> None:
        if not self._spaced:
            self._line([])

    def _line(self, line: Line) -> None:
        self._spaced = not any(text.strip() for _, text in line)
        self._finished.append(line)
