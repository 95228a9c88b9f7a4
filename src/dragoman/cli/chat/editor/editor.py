"""The line editor: what the user types, until it is sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from prompt_toolkit.buffer import Buffer, CompletionState
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyPressEvent

from dragoman.cli.chat.editor.completion import ChatCompleter
from dragoman.cli.chat.editor.pastes import Pastes
from dragoman.cli.chat.lines.markdown import Line, safe

SIGN = "> "
COMPLETIONS = 6
"""Candidates that are shown at once."""


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """A line that is asked for, instead of a prompt; `done` gets None if the user gives none."""

    sign: str
    done: Callable[[str | None], None]


class Editor:
    def __init__(
        self,
        folder: Path,
        history: Path | None,
        commands: Callable[[], Mapping[str, str]],
        *,
        read_only: bool,
    ) -> None:
        self.on_line: Callable[[str], None] = lambda text: None
        self.on_recall: Callable[[], str | None] = lambda: None
        """Takes the last queued prompt back, for editing; None if there is none."""
        self._pastes = Pastes()
        self._sign = "" if read_only else SIGN
        self._asked: Asked | None = None
        self._kept = ""
        self.completer = ChatCompleter(folder, commands)
        kept: History = FileHistory(str(history)) if history is not None else InMemoryHistory()
        self.buffer = Buffer(
            multiline=True,
            history=kept,
            completer=self.completer,
            complete_while_typing=Condition(self._completes),
            enable_history_search=False,
            read_only=read_only,
        )

    @property
    def text(self) -> str:
        return self.buffer.text

    @property
    def sign(self) -> str:
        return self._asked.sign if self._asked is not None else self._sign

    # -- sending

    def submit(self) -> None:
        text = self.buffer.text
        asked = self._asked
        if asked is not None:
            self._end_asking()
            asked.done(self._pastes.unfold(text).strip() or None)
        elif text.strip():
            self.buffer.append_to_history()
            self.buffer.reset()
            self.on_line(self._pastes.unfold(text).strip("\n"))

    def take(self) -> str:
        """The text, which is not in the line any more; empty while another line is asked for."""
        if self._asked is not None or not self.buffer.text.strip():
            return ""
        text = self.buffer.text
        self.buffer.append_to_history()
        self.buffer.reset()
        return self._pastes.unfold(text).strip("\n")

    def clear(self) -> bool:
        """Clear the line, or stop asking for one; False if there is nothing to clear."""
        if self._asked is not None:
            asked = self._asked
            self._end_asking()
            asked.done(None)
            return True
        cleared = bool(self.buffer.text)
        self.buffer.reset()
        return cleared

    # -- asking for a line

    @property
    def asking(self) -> bool:
        return self._asked is not None

    def ask(self, asked: Asked) -> None:
        """Ask for a line; what is in the editor comes back after it."""
        if self._asked is not None:
            self.clear()
        self._kept = self.buffer.text
        self.buffer.reset()
        self._asked = asked

    def stop_asking(self, asked: Asked) -> None:
        """The line is not needed any more."""
        if self._asked is asked:
            self._end_asking()

    def _end_asking(self) -> None:
        self._asked = None
        self.buffer.reset()
        if self._kept:
            self.put(self._kept)
        self._kept = ""

    # -- editing

    def open_editor(self) -> None:
        self.buffer.open_in_editor()

    def recall(self, event: KeyPressEvent) -> None:
        text = self.on_recall() if self._asked is None else None
        if text is None:
            self.buffer.auto_up(count=event.arg)
        else:
            self.put(text)

    def put(self, text: str) -> None:
        """Put text into the editor, before what is there."""
        self.buffer.text = text + (f"\n{self.buffer.text}" if self.buffer.text else "")
        self.buffer.cursor_position = len(self.buffer.text)

    def replace(self, old: str, new: str) -> bool:
        """Replace what `put` has put; False if it was changed since."""
        rest = self.buffer.text.removeprefix(old)
        if not old or rest == self.buffer.text:
            return False
        back = len(self.buffer.text) - self.buffer.cursor_position
        self.buffer.text = new + rest
        self.buffer.cursor_position = max(0, len(self.buffer.text) - back)
        return True

    def paste(self, data: str) -> None:
        text = safe(data.replace("\r\n", "\n").replace("\r", "\n"))
        self.buffer.insert_text(self._pastes.fold(text))

    # -- completing

    def _completes(self) -> bool:
        before = self.buffer.document.text_before_cursor
        word = before.split()[-1] if before and not before[-1].isspace() else ""
        return word.startswith("@") or (before.startswith("/") and "\n" not in before)

    @property
    def completion_chosen(self) -> bool:
        state = self.buffer.complete_state
        return state is not None and state.current_completion is not None

    def tab(self) -> None:
        """Complete what has one candidate; show several, and go to the next of those that are shown."""
        buffer = self.buffer
        state, shown = buffer.complete_state, True
        if state is None or not state.completions:
            event = CompleteEvent(completion_requested=True)
            found = list(buffer.completer.get_completions(buffer.document, event))
            state, shown = CompletionState(buffer.document, found), False
        count = len(state.completions)
        buffer.complete_state = state if count else None
        if count == 1:
            buffer.go_to_completion(0)
            buffer.complete_state = None  # so that another Tab does not take it back
        elif count and shown:
            buffer.go_to_completion(0 if state.complete_index is None else (state.complete_index + 1) % count)

    def take_completion(self) -> None:
        self.buffer.complete_state = None
        if not self.buffer.text.startswith("/"):
            self.buffer.insert_text(" ")

    def completion_lines(self) -> list[Line]:
        state = self.buffer.complete_state
        if state is None:
            return []
        marked = state.complete_index or 0
        first = max(0, min(marked - COMPLETIONS + 1, len(state.completions) - COMPLETIONS))
        shown: list[Line] = []
        for index, completion in enumerate(state.completions[first : first + COMPLETIONS], first):
            style = "reverse" if index == state.complete_index else ""
            shown.append(
                [
                    (style, f"  {completion.display_text:<24}"),
                    ("class:status", f"  {completion.display_meta_text}"),
                ]
            )
        return shown
