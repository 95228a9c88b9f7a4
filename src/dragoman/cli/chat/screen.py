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
from prompt_toolkit.filters import Condition, has_focus
from prompt_toolkit.formatted_text import StyleAndTextTuples
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

from dragoman.cli.chat.attention import DO_NOT_REPORT, FOCUS_IN, FOCUS_OUT, REPORT, Attention
from dragoman.cli.chat.editor.editor import COMPLETIONS, Editor
from dragoman.cli.chat.lines.markdown import Line, safe
from dragoman.cli.chat.lines.wrapping import wrap
from dragoman.cli.chat.menu import Menu
from dragoman.terminal import clean, unguarded_stdout

MOVES = "\r\n\b"
FLUSH_AFTER = 0.03
"""Seconds between two prints of finished lines: more often cannot be read, and costs."""
FLUSH_SOON = 0.002
"""Seconds until the next of several prints: keys come between."""
LINES_AT_ONCE = 60
"""Finished lines printed at once: keys wait meanwhile, so it takes a few milliseconds."""
MOST_WAITING = 1000
"""Finished lines that may wait to be printed; whoever makes more waits (`printed`)."""
REFRESH_AFTER = 0.05
"""Seconds between two drawings of the part that changes."""
TAIL_ROWS = 12
EDIT_ROWS = 10
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
        self.on_interrupt: Callable[[], None] = self.leave
        self.on_steer: Callable[[str], None] = lambda text: None
        """Gets what is in the line, which is empty if what waits is meant."""
        self.tail: Callable[[int], list[Line]] = lambda columns: []
        self.unfinished: Callable[[], list[Line]] = list
        """What of the tail is to stay when the user leaves."""
        self.queued: Callable[[], Sequence[str]] = tuple
        self.status: Callable[[], str] = str
        self._menus: list[Menu] = []
        self._finished: list[Line] = []
        self._flushing = self._refreshing = False
        self._room = asyncio.Event()
        self.editor = Editor(folder, history, commands, read_only=read_only)
        self._buffer = self.editor.buffer
        self._search = SearchToolbar()
        self._output = CleanOutput.from_pty(unguarded_stdout(), term=os.environ.get("TERM"))
        self._output.enable_cpr = (
            False  # nothing here needs the cursor's position, and some terminals do not tell it
        )
        self.attention = Attention(self.write_sequence)
        self.app: Application[None] = Application(
            layout=Layout(self._layout(), focused_element=self._buffer),
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
        self.write_sequence(REPORT)
        try:
            await self.app.run_async(handle_sigint=False)
        finally:
            self.write_sequence(DO_NOT_REPORT)
        self._finished += self.unfinished()
        self._flush()

    def write_sequence(self, sequence: str) -> None:
        """Write a control sequence, which moves nothing; its text must be clean."""
        self._output.write_raw(sequence)
        self._output.flush()

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

    async def printed(self) -> None:
        """Wait until few finished lines wait to be printed."""
        while len(self._finished) > MOST_WAITING and not self.app.is_done:
            self._room.clear()
            await self._room.wait()

    def _flush(self) -> None:
        self._flushing = False
        if not self._finished or (self.app.is_running and self.app.is_done):
            self._room.set()
            return  # `run` prints what is left, once the part that changes is gone
        some = LINES_AT_ONCE if self.app.is_running else len(self._finished)
        lines, self._finished = self._finished[:some], self._finished[some:]
        if self.app.is_running:
            self.app.renderer.erase()
        shown: StyleAndTextTuples = []
        for line in self._wrapped(lines):
            shown += [(style, text) for style, text in line]
            shown.append(("", "\n"))
        print_formatted_text(self._output, shown, self.app.style or STYLE, color_depth=self.app.color_depth)
        self._output.flush()
        self.app.invalidate()
        if len(self._finished) <= MOST_WAITING // 2:
            self._room.set()
        if self._finished:
            self._flushing = True
            asyncio.get_running_loop().call_later(FLUSH_SOON, self._flush)

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
        return bool(self._menus) and not self.editor.asking and not self.editor.text and self._menus[0].ready

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
            BufferControl(self._buffer, search_buffer_control=self._search.control, preview_search=True),
            get_line_prefix=lambda number, wrapped: (
                [("ansigreen bold", self.editor.sign)] if not number and not wrapped else [("", "  ")]
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
                window(self.editor.completion_lines, COMPLETIONS),
                status,
            ]
        )

    def _menu_lines(self) -> list[Line]:
        if not self._menus or self.editor.asking:
            return []
        blocked = [[("ansiyellow", BLOCKED)]] if self.editor.text else []
        return [*self._menus[0].lines(), *blocked]

    def _queued_lines(self) -> list[Line]:
        return [
            [("class:queued", f"queued: {safe(text).splitlines()[0][:100]}")]
            for text in self.queued()
            if text
        ]

    # -- keys

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()
        editing = has_focus(self._buffer)  # and not the search of what was typed before
        menu = editing & Condition(self._menu_takes_keys)
        empty = editing & Condition(lambda: not self.editor.text)
        chosen = Condition(lambda: self.editor.completion_chosen)
        editor = self.editor

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
        bind("escape", filter=editing & Condition(lambda: editor.asking))(lambda event: self._interrupt())
        bind(FOCUS_IN)(lambda event: self.attention.focused(True))
        bind(FOCUS_OUT)(lambda event: self.attention.focused(False))
        bind("c-s", filter=editing)(lambda event: self.on_steer(editor.take()))
        bind("up", filter=empty & ~menu)(editor.recall)
        bind("enter", filter=editing & chosen & ~menu)(lambda event: editor.take_completion())
        bind("enter", filter=editing & ~chosen & ~menu)(lambda event: editor.submit())
        bind("escape", "enter", filter=editing)(lambda event: self._buffer.insert_text("\n"))
        bind("c-j", filter=editing)(lambda event: self._buffer.insert_text("\n"))
        bind("tab", filter=editing)(lambda event: editor.tab())
        bind("c-c", filter=editing)(lambda event: self._interrupt())
        bind("c-d", filter=empty)(lambda event: self.leave())
        bind("q", filter=Condition(self._buffer.read_only))(lambda event: self.leave())
        bind("c-g", filter=editing)(lambda event: editor.open_editor())
        bind(Keys.BracketedPaste, filter=editing)(lambda event: editor.paste(event.data))
        return keys

    def _interrupt(self) -> None:
        if not self.editor.clear():
            self.on_interrupt()

    def _dismiss(self) -> None:
        menu = self._menus[0]
        if menu.dismissed is not None:
            self.close_menu(menu)
            menu.dismissed()


def _joined(lines: list[Line]) -> StyleAndTextTuples:
    shown: StyleAndTextTuples = []
    for index, line in enumerate(lines):
        if index:
            shown.append(("", "\n"))
        shown += [(style, text) for style, text in line]
    return shown
