"""`/rewind`, `/undo` and `/changes`: going back in a session, and what it changed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from dragoman.cli.chat.commands.chat import Chat
from dragoman.cli.chat.editor.content import text_of_prompt
from dragoman.cli.chat.lines.diff import diff_lines
from dragoman.cli.chat.lines.markdown import Line, one_line, safe
from dragoman.cli.chat.menu import Choice, Menu, Offer
from dragoman.cli.chat.screen import ChatScreen
from dragoman.client.errors import RequestRefused
from dragoman.client.history import FileChange, Message, Rewound, SessionChanges, Shared, What
from dragoman.client.session import Session

PATCH_LINES = 200
"""Lines of a session's changes that are printed."""
FILES = 8
"""Files that are named before a rewind."""
LETTERS = {"added": "A", "deleted": "D", "modified": "M", "renamed": "R", "type_changed": "T"}
BUSY = "a turn runs: wait until it ends, or cancel it with Ctrl-C, then /{name} again"
FAINT = "ansibrightblack"


class History:
    def __init__(self, chat: Chat, screen: ChatScreen) -> None:
        self._chat = chat
        self._screen = screen

    # -- rewind

    async def rewind(self, session: Session, number: str) -> None:
        if self._is_busy("rewind"):
            return
        found = [message for message in await session.messages() if not message.undone]
        if not found:
            self._chat.say("there is no message to go back to yet")
            return
        if number:
            message = next((one for one in found if str(one.number) == number), None)
            if message is None:
                self._chat.say(f"there is no message {number}: /rewind lists them", "ansired")
                return
        else:
            message = await self._choose(found)
        if message is not None:
            await self._go_back(session, message, sum(one.number >= message.number for one in found))

    async def _choose(self, found: Sequence[Message]) -> Message | None:
        from dragoman.cli.sessions.state import ago

        latest = list(reversed(found))
        labels = [f"{one.number:>3}  {one_line(one.text)}  ({ago(one.time)})" for one in latest]
        index = await self._ask("Back to before which message?  Escape leaves it", labels)
        return latest[index] if index is not None else None

    async def _go_back(self, session: Session, message: Message, count: int) -> None:
        changes = await session.changes(since=message.number)
        undone = f"{count} message{'s' * (count != 1)}"
        offers: list[tuple[str, What]] = [(f"The conversation alone: {undone}", "conversation")]
        files = len(changes.files)
        if files:
            counted = f"{files} file{'s' * (files != 1)}"
            offers.append((f"The conversation and the files: {undone}, {counted}", "both"))
            offers.append((f"The files alone: {counted}", "files"))
        about = _about(changes)
        title = f"Back to before: {one_line(message.text)}"
        index = await self._ask(title, [label for label, _ in offers], about)
        if index is None or self._is_busy("rewind"):
            return
        rewound = await self._carry_out(session, message.number, offers[index][1])
        if rewound is not None:
            self._tell(rewound)
            text = text_of_prompt(rewound.prompt)
            if text and offers[index][1] != "files":
                self._screen.editor.put(text)

    async def _carry_out(self, session: Session, number: int, what: What) -> Rewound | None:
        try:
            return await session.rewind(number, what)
        except RequestRefused as error:
            if error.reason != "shared_changes":
                raise
            ways: list[tuple[str, Shared]] = [
                ("Take these back too", "include"),
                ("Leave these as they are", "leave"),
            ]
            index = await self._ask(str(error), [label for label, _ in ways])
            return None if index is None else await session.rewind(number, what, shared=ways[index][1])

    # -- undo

    async def undo(self, session: Session) -> None:
        if not self._is_busy("undo"):
            self._tell(await session.undo())

    def _tell(self, rewound: Rewound) -> None:
        from dragoman.cli.changes.rewind import AGENT_WORDS

        if rewound.undone:
            many = f"{rewound.undone} message{'s' * (rewound.undone != 1)}"
            where = f"{many} undone" if rewound.message is not None else f"{many} brought back"
            undo = "; /undo brings them back" if rewound.message is not None else ""
            self._chat.say(f"{where}; {AGENT_WORDS.get(rewound.agent, '')}{undo}")
        if rewound.files is not None:
            named = ", ".join(rewound.files[:FILES]) + (" …" if len(rewound.files) > FILES else "")
            self._chat.say(f"restored: {named}" if rewound.files else "no file had to be changed")

    # -- changes

    async def changes(self, session: Session, turn: str) -> None:
        if turn and not (turn.isascii() and turn.isdigit()):
            self._chat.say(
                f"{turn} is not the number of a turn: /changes 2 shows what the second one changed"
            )
            return
        found = await session.changes(int(turn[:9]) if turn else None)
        if not found.files:
            self._chat.say("nothing was changed")
            return
        lines: list[Line] = []
        for file in found.files:
            lines += _patch(file)
        more = len(lines) - PATCH_LINES
        if more > 0:
            wanted = f" --turn {turn}" if turn else ""
            told = f"  … {more} more lines: dragoman changes {session.id}{wanted}"
            lines[PATCH_LINES:] = [[(FAINT, told)]]
        self._chat.show(lines)

    # -- asking

    async def _ask(self, title: str, labels: Sequence[str], about: Sequence[Line] = ()) -> int | None:
        answered: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()
        offer = Offer([[("bold", safe(title))], *about], [Choice(label) for label in labels])
        menu = Menu.of(offer, answered.set_result, lambda: answered.set_result(None))
        self._screen.ask(menu)
        try:
            return await answered
        finally:
            self._screen.close_menu(menu)

    def _is_busy(self, name: str) -> bool:
        if self._chat.busy:
            self._chat.say(BUSY.format(name=name), "ansiyellow")
        return self._chat.busy


def _about(changes: SessionChanges) -> list[Line]:
    """What a rewind of files would change, for the menu."""
    if not changes.recorded:
        return [[(FAINT, "  the files before it are not recorded, so they stay")]]
    shown = [_stat(file) for file in changes.files[:FILES]]
    if len(changes.files) > FILES:
        shown.append([(FAINT, f"    … {len(changes.files) - FILES} more files")])
    return shown or [[(FAINT, "  no file was changed since")]]


def _stat(file: FileChange) -> Line:
    shared = "  not by this session alone" if file.shared else ""
    return [
        (FAINT, f"  {LETTERS.get(file.status, ' ')} {safe(file.path)} "),
        ("ansigreen", f"+{file.added}"),
        ("ansired", f" -{file.removed}"),
        (FAINT, shared),
    ]


def _patch(file: FileChange) -> list[Line]:
    lines = [line for hunk in file.hunks for line in hunk.splitlines()]
    return [_stat(file), *diff_lines(lines)]
