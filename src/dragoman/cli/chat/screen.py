"""The terminal of a chat: finished lines above, printed once; below them the part that changes, with the line editor.

Only prompt_toolkit is imported here, so that the prompt is there before the client library is loaded.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from prompt_toolkit.application import Application
from prompt_toolkit.application.run_in_terminal import run_in_terminal
from prompt_toolkit.buffer import Buffer, CompletionState
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.filters import Condition, has_focus
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import (
    BufferControl,
    ConditionalContainer,
    Dimension,
    FormattedTextControl,
    HSplit,
    Layout,
    Window,
)
from prompt_toolkit.output.color_depth import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.renderer import print_formatted_text
from prompt_toolkit.styles import Style
from prompt_toolkit.widgets import SearchToolbar

from dragoman.cli.chat.completion import ChatCompleter
from dragoman.cli.chat.content import Pastes
from dragoman.cli.chat.markdown import Line, safe
from dragoman.cli.chat.menu import Menu
from dragoman.cli.chat.wrapping import wrap
from dragoman.terminal import clean, unguarded_stdout

SIGN = "> "
MOVES = "\r\n\b"
FLUSH_AFTER = 0.03
"""Seconds between two prints of finished lines: more often cannot be read, and costs."""
REFRESH_AFTER = 0.05
"""Seconds between two drawings of the part that changes."""
TAIL_ROWS = 12
EDIT_ROWS = 10
COMPLETIONS = 6
BLOCKED = "   clear the line to answer (Ctrl-U)"
STYLE = Style.from_dict({"status": "ansibrightblack", "queued": "ansibrightblack italic"})


class CleanOutput(Vt100_Output):
    """Passes the sequences that prompt_toolkit makes, and cleans all text."""

    def write(self, data: str) -> None:
        moves = not data.strip(MOVES)  # as prompt_toolkit writes them, apart from text
        super().write(data if moves else clean(data))


class ChatScreen:
    def __init__(
        self,
        folder: Path,
        history: Path | None,
        commands: Callable[[], Mapping[str, str]],
        *,
        read_only: bool = False,
    ) -> None:
        self.on_line: Callable[[str], None] = lambda text: None
        self.on_interrupt: Callable[[], None] = self.leave
        self.on_recall: Callable[[], str | None] = lambda: None
        """Takes the last queued prompt back, for editing; None if there is none."""
        self.tail: Callable[[int], list[Line]] = lambda columns: []
        self.unfinished: Callable[[], list[Line]] = list
        """What of the tail is to stay when the user leaves."""
        self.queued: Callable[[], Sequence[str]] = tuple
        self.status: Callable[[], str] = str
        self._sign = "" if read_only else SIGN
        self._menus: list[Menu] = []
        self._finished: list[Line] = []
        self._flushing = self._refreshing = False
        self._pastes = Pastes()
        kept: History = FileHistory(str(history)) if history is not None else InMemoryHistory()
        self.buffer = Buffer(
            multiline=True,
            history=kept,
            completer=ChatCompleter(folder, commands),
            complete_while_typing=Condition(self._completes),
            enable_history_search=False,
            read_only=read_only,
        )
        self._search = SearchToolbar()
        self._output = CleanOutput.from_pty(unguarded_stdout(), term=os.environ.get("TERM"))
        self._output.enable_cpr = (
            False  # nothing here needs the cursor's position, and some terminals do not tell it
        )
        self.app: Application[None] = Application(
            layout=Layout(self._layout(), focused_element=self.buffer),
            key_bindings=self._keys(),
            output=self._output,
            style=STYLE,
            erase_when_done=True,
            enable_page_navigation_bindings=False,
            color_depth=ColorDepth.DEPTH_1_BIT if os.environ.get("NO_COLOR") else None,
        )
        self.app.ttimeoutlen = 0.1
        self.app.timeoutlen = 0.3

    async def run(self, started: Callable[[], None]) -> None:
        """Show the prompt until the user leaves; `started` is called when it is there."""
        first = True

        def rendered(app: Application[None]) -> None:
            nonlocal first
            if first:
                first = False
                asyncio.get_running_loop().call_soon(started)

        for number in (signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, self.leave)  # which restores the terminal
        self.app.after_render += rendered
        await self.app.run_async(handle_sigint=False)
        self._finished += self.unfinished()
        self._flush()

    def leave(self) -> None:
        if self.app.is_running and not self.app.is_done:
            self.app.exit()

    # -- printing

    def show(self, lines: Sequence[Line]) -> None:
        """Print finished lines above the editor, soon."""
        self._finished += lines
        if self._finished and not self._flushing:
            self._flushing = True
            asyncio.get_running_loop().call_later(FLUSH_AFTER, self._flush)

    def _flush(self) -> None:
        self._flushing = False
        if not self._finished or (self.app.is_running and self.app.is_done):
            return  # `run` prints what is left, once the part that changes is gone
        lines, self._finished = self._finished, []
        if self.app.is_running:
            self.app.renderer.erase()
        shown: StyleAndTextTuples = []
        for line in self._wrapped(lines):
            shown += [(style, text) for style, text in line]
            shown.append(("", "\n"))
        print_formatted_text(self._output, shown, self.app.style or STYLE, color_depth=self.app.color_depth)
        self._output.flush()
        self.app.invalidate()

    def _wrapped(self, lines: Sequence[Line]) -> list[Line]:
        columns = self._output.get_size().columns
        return [row for line in lines for row in wrap(line, columns)]

    def refresh(self) -> None:
        """Draw what changed, soon; keys are drawn at once, by prompt_toolkit itself."""
        if not self._refreshing:
            self._refreshing = True
            asyncio.get_running_loop().call_later(REFRESH_AFTER, self._refresh)

    def _refresh(self) -> None:
        self._refreshing = False
        self.app.invalidate()

    async def in_terminal(self, work: Callable[[], object]) -> None:
        """Run something that uses the terminal itself, such as a command."""
        self._flush()
        await run_in_terminal(work, in_executor=True)

    # -- menus

    def ask(self, menu: Menu) -> None:
        self._menus.append(menu)
        if len(self._menus) == 1:
            menu.shown()
        self.refresh()

    def close_menu(self, menu: Menu) -> None:
        if menu not in self._menus:
            return
        first = self._menus[0] is menu
        self._menus.remove(menu)
        if first and self._menus:
            self._menus[0].shown()
        self.refresh()

    def close_menus(self) -> None:
        self._menus.clear()
        self.refresh()

    def _menu_takes_keys(self) -> bool:
        return bool(self._menus) and not self.buffer.text and self._menus[0].ready

    def _completes(self) -> bool:
        before = self.buffer.document.text_before_cursor
        word = before.split()[-1] if before and not before[-1].isspace() else ""
        return word.startswith("@") or (before.startswith("/") and " " not in before)

    # -- layout

    def _layout(self) -> HSplit:
        def window(lines: Callable[[], list[Line]], rows: int) -> ConditionalContainer:
            control = FormattedTextControl(lambda: _joined(self._wrapped(lines())), show_cursor=False)
            height = Dimension(max=rows)
            return ConditionalContainer(
                Window(control, wrap_lines=True, dont_extend_height=True, height=height),
                Condition(lambda: bool(lines())),
            )

        editor = Window(
            BufferControl(self.buffer, search_buffer_control=self._search.control, preview_search=True),
            get_line_prefix=lambda number, wrapped: (
                [("ansigreen bold", self._sign)] if not number and not wrapped else [("", "  ")]
            ),
            wrap_lines=True,
            dont_extend_height=True,
            height=Dimension(min=1, max=EDIT_ROWS),
        )
        status = Window(
            FormattedTextControl(lambda: [("class:status", safe(self.status()))]),
            height=1,
            style="class:status",
        )
        return HSplit(
            [
                window(lambda: self.tail(self._output.get_size().columns), TAIL_ROWS),
                window(self._menu_lines, 40),
                window(self._queued_lines, 6),
                editor,
                self._search,
                window(self._completion_lines, COMPLETIONS),
                status,
            ]
        )

    def _menu_lines(self) -> list[Line]:
        if not self._menus:
            return []
        blocked = [[("ansiyellow", BLOCKED)]] if self.buffer.text else []
        return [*self._menus[0].lines(), *blocked]

    def _completion_lines(self) -> list[Line]:
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

    def _queued_lines(self) -> list[Line]:
        return [
            [("class:queued", f"queued: {safe(text).splitlines()[0][:100]}")]
            for text in self.queued()
            if text
        ]

    # -- keys

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()
        editing = has_focus(self.buffer)  # and not the search of what was typed before
        menu = editing & Condition(self._menu_takes_keys)
        empty = editing & Condition(lambda: not self.buffer.text)
        chosen = Condition(
            lambda: (
                self.buffer.complete_state is not None
                and self.buffer.complete_state.current_completion is not None
            )
        )

        def bind(*names: str, **options: Any) -> Callable[[Callable[[KeyPressEvent], None]], None]:
            def add(handler: Callable[[KeyPressEvent], None]) -> None:
                keys.add(*names, **options)(handler)

            return add

        for number in range(1, 10):
            bind(str(number), filter=menu)(lambda event, number=number: self._menus[0].digit(number))  # type: ignore[misc]
        bind("up", filter=menu)(lambda event: self._menus[0].move(-1))
        bind("down", filter=menu)(lambda event: self._menus[0].move(1))
        bind("enter", filter=menu)(lambda event: self._menus[0].enter())
        bind("escape", filter=menu, eager=False)(lambda event: self._dismiss())
        bind("up", filter=empty & ~menu)(lambda event: self._recall(event))
        bind("enter", filter=editing & chosen & ~menu)(lambda event: self._complete())
        bind("enter", filter=editing & ~chosen & ~menu)(lambda event: self._submit())
        bind("escape", "enter", filter=editing)(lambda event: self.buffer.insert_text("\n"))
        bind("c-j", filter=editing)(lambda event: self.buffer.insert_text("\n"))
        bind("tab", filter=editing)(lambda event: self._tab())
        bind("c-c", filter=editing)(lambda event: self._interrupt())
        bind("c-d", filter=empty)(lambda event: self.leave())
        bind("q", filter=Condition(self.buffer.read_only))(lambda event: self.leave())
        bind("c-g", filter=editing)(lambda event: self._edit())
        bind(Keys.BracketedPaste, filter=editing)(lambda event: self._paste(event.data))
        return keys

    def _submit(self) -> None:
        text = self.buffer.text
        if not text.strip():
            return
        self.buffer.append_to_history()
        self.buffer.reset()
        self.on_line(self._pastes.unfold(text).strip("\n"))

    def _edit(self) -> None:
        self.buffer.open_in_editor()

    def _tab(self) -> None:
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

    def _complete(self) -> None:
        self.buffer.complete_state = None
        if not self.buffer.text.startswith("/"):
            self.buffer.insert_text(" ")

    def _recall(self, event: KeyPressEvent) -> None:
        text = self.on_recall()
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

    def _interrupt(self) -> None:
        if self.buffer.text:
            self.buffer.reset()
        else:
            self.on_interrupt()

    def _dismiss(self) -> None:
        menu = self._menus[0]
        if menu.dismissed is not None:
            self.close_menu(menu)
            menu.dismissed()

    def _paste(self, data: str) -> None:
        text = safe(data.replace("\r\n", "\n").replace("\r", "\n"))
        self.buffer.insert_text(self._pastes.fold(text))


def _joined(lines: list[Line]) -> StyleAndTextTuples:
    shown: StyleAndTextTuples = []
    for index, line in enumerate(lines):
        if index:
            shown.append(("", "\n"))
        shown += [(style, text) for style, text in line]
    return shown
