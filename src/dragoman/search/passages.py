"""Makes passages to search in out of a journal's events: one per message, thought or tool call.

An agent sends a message in many small chunks. A phrase may begin in one of them and end in another, so they are joined;
`marks` says which event each part of the text came from. A tool call has its title and its last content, once.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

import msgspec
from msgspec import Raw, Struct

from dragoman.gateway.delivery.events import HISTORY, PROMPT, TURN_ENDED
from dragoman.terminal import clean

PASSAGE = 8 * 1024
"""Characters of one passage; a longer text becomes several, cut between words."""
OVERLAP = 256
"""Characters that two passages of one text share, so that a phrase at the cut is found."""
TOOL_TEXT = 16 * 1024
"""Characters of a tool call that are searched: its beginning. Files and logs would fill the index with other text."""
OPEN_TOOLS = 512
"""Tool calls of one turn that may wait for their end; more are searched as they were told first."""

WHO = {
    "user_message_chunk": "user",
    "agent_message_chunk": "agent",
    "agent_thought_chunk": "thought",
}
"""Kind of update: who said it."""
TOOL = "tool"


class Passage(Struct, frozen=True):
    who: str
    """`user`, `agent`, `thought` or `tool`."""
    at: int
    """Milliseconds since 1970."""
    text: str
    marks: tuple[tuple[int, int], ...]
    """Where the text of an event begins, and the number of that event; ascending."""

    @property
    def first_seq(self) -> int:
        return self.marks[0][1]


class _Update(Struct, rename="camel"):
    session_update: str = ""
    content: Raw = Raw(b"null")
    message_id: Raw = Raw(b"")
    tool_call_id: str = ""
    title: str | None = None


class _Params(Struct):
    update: _Update


class _Line(Struct):
    params: _Params


_decode = msgspec.json.Decoder(_Line).decode


class Collector:
    """Collects the passages of one journal; `taken` returns those that are complete."""

    def __init__(self) -> None:
        self._done: list[Passage] = []
        self._run: _Run | None = None
        self._tools: dict[str, _Tool] = {}

    def event(self, seq: int, at: int, event: bytes) -> bool:
        """Read one event; True if it is the end of a turn."""
        if event.startswith(TURN_ENDED):
            self.close()
            return True
        tag = event[:1]
        if tag in (HISTORY, PROMPT):
            try:
                update = _decode(event[1:]).params.update
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                return False  # another message than an update, or one that only its agent understands
            self._update(seq, at, update, prompt=tag == PROMPT)
        return False

    def update(self, seq: int, at: int, update: object) -> None:
        """Read an update that is in no journal, from the history of an agent."""
        try:
            self._update(
                seq, at, msgspec.json.decode(msgspec.json.encode(update), type=_Update), prompt=False
            )
        except (msgspec.DecodeError, msgspec.EncodeError, UnicodeError, RecursionError):
            return

    def close(self) -> None:
        """Complete everything that is open."""
        self._end_run()
        for tool in self._tools.values():
            self._done += tool.passages()
        self._tools.clear()

    def taken(self) -> list[Passage]:
        done, self._done = self._done, []
        return done

    def _update(self, seq: int, at: int, update: _Update, *, prompt: bool) -> None:
        if update.tool_call_id:
            self._end_run()
            self._tool(seq, at, update)
        elif (who := WHO.get(update.session_update)) is not None:
            text = "\n".join(_texts(update.content))
            key = (who, bytes(update.message_id))
            if self._run is None or self._run.key != key:
                self._end_run()
                self._run = _Run(key, at)
            self._run.add(seq, f"{text}\n" if prompt else text)

    def _tool(self, seq: int, at: int, update: _Update) -> None:
        tool = self._tools.get(update.tool_call_id)
        if tool is None:
            tool = _Tool(seq, at)
            if len(self._tools) >= OPEN_TOOLS:
                self._done += self._tools.pop(next(iter(self._tools))).passages()
            self._tools[update.tool_call_id] = tool
        if update.title:
            tool.title = update.title
        content = "\n".join(_texts(update.content))
        if content:
            tool.content, tool.content_seq = content[:TOOL_TEXT], seq

    def _end_run(self) -> None:
        if self._run is not None:
            self._done += self._run.passages()
            self._run = None


class _Run:
    """Adjacent chunks of one message."""

    def __init__(self, key: tuple[str, bytes], at: int) -> None:
        self.key = key
        self._at = at
        self._parts: list[tuple[int, str]] = []

    def add(self, seq: int, text: str) -> None:
        self._parts.append((seq, text))

    def passages(self) -> list[Passage]:
        return list(_split(self.key[0], self._at, self._parts))


class _Tool:
    def __init__(self, seq: int, at: int) -> None:
        self._seq = seq
        self._at = at
        self.title = ""
        self.content = ""
        self.content_seq = seq

    def passages(self) -> list[Passage]:
        parts = [(self._seq, self.title[:TOOL_TEXT] + "\n"), (self.content_seq, self.content)]
        return list(_split(TOOL, self._at, parts))


def _split(who: str, at: int, parts: list[tuple[int, str]]) -> Iterator[Passage]:
    """The joined text as passages of at most `PASSAGE` characters."""
    marks: list[tuple[int, int]] = []
    cleaned: list[str] = []
    length = 0
    for seq, part in parts:
        text = clean(part)
        if text:
            marks.append((length, seq))
            cleaned.append(text)
            length += len(text)
    whole = "".join(cleaned)
    if not whole.strip():
        return
    offsets = [offset for offset, _ in marks]
    start = 0
    while True:
        end = length if length - start <= PASSAGE else _cut(whole, start + PASSAGE // 2, start + PASSAGE)
        within = marks[bisect_right(offsets, start) - 1 : bisect_left(offsets, end)]
        placed = tuple((max(0, offset - start), seq) for offset, seq in within)
        yield Passage(who, at, whole[start:end], placed)
        if end == length:
            return
        start = _cut(whole, end - OVERLAP, end - OVERLAP // 2)


def _cut(text: str, first: int, last: int) -> int:
    """The place after the last blank between `first` and `last`; `last` if there is none."""
    found = max(text.rfind(" ", first, last), text.rfind("\n", first, last))
    return found + 1 if found >= 0 else last


def _texts(raw: Raw) -> Iterator[str]:
    """The texts in the content of an update: a block, or a list of what a tool call shows."""
    try:
        content = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return
    for item in content if isinstance(content, list) else [content]:
        if not isinstance(item, dict):
            continue
        inner = item.get("content")
        block = inner if isinstance(inner, dict) else item
        resource = block.get("resource")
        for holder in (block, resource if isinstance(resource, dict) else {}):
            for name in ("text", "uri", "path", "newText"):
                if isinstance(text := holder.get(name), str):
                    yield text
