"""A session on disk: its facts, the updates to replay, and the messages of its model.

One file per session, one JSON object per line, append-only; a line truncated by a crash is ignored. The
messages stay encoded, so that a session can be listed and replayed without importing the model libraries.
"""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

log = logging.getLogger(__name__)

Json = dict[str, Any]

_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")
_MERGED = frozenset({"agent_message_chunk", "agent_thought_chunk", "user_message_chunk"})


class Facts(msgspec.Struct, omit_defaults=True, kw_only=True):
    """Properties of a session; the last such line in the file counts."""

    cwd: str
    roots: list[str]
    mode: str
    model: str | None = None
    title: str | None = None
    updated: float = 0.0


class _Line(msgspec.Struct, omit_defaults=True):
    facts: Facts | None = None
    update: msgspec.Raw = msgspec.Raw(b"null")
    message: msgspec.Raw = msgspec.Raw(b"null")
    forget: int | None = None
    """A compaction: this many messages before it are replaced by those that follow."""


_NULL = msgspec.Raw(b"null")


class History:
    """The file of one session; new lines stay in memory until `flush`."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._lines: list[bytes] = []
        self._open: Json | None = None
        self.updates: list[Json] = []
        self.messages: list[bytes] = []
        self.facts: Facts | None = None

    @classmethod
    def load(cls, file: Path) -> History:
        """Read a session's file without its damaged lines; raises FileNotFoundError."""
        history = cls(file)
        decoder = msgspec.json.Decoder(_Line)
        for raw in file.read_bytes().splitlines():
            try:
                line = decoder.decode(raw)
            except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError):
                log.warning("a damaged line of %s is left out", file.name)
                continue
            history._take(line)
        return history

    def _take(self, line: _Line) -> None:
        if line.facts is not None:
            self.facts = line.facts
        if line.update != _NULL:
            self.updates.append(msgspec.json.decode(line.update))
        if line.forget is not None:
            self.messages = self.messages[line.forget :]
        if line.message != _NULL:
            self.messages.append(bytes(line.message))

    # -- adding

    def record(self, update: Json) -> None:
        """Record an update for replay; chunks of one message are merged."""
        kind = update.get("sessionUpdate")
        text = _text(update)
        if self._open is not None and (
            text is None
            or kind != self._open["sessionUpdate"]
            or update.get("messageId") != self._open.get("messageId")
        ):
            self._close_message()
        if text is not None and kind in _MERGED:
            if self._open is None:
                self._open = {**update, "content": {**update["content"]}, "_parts": []}
            self._open["_parts"].append(text)
        else:
            self._keep(update)

    def _close_message(self) -> None:
        if self._open is not None:
            merged, self._open = self._open, None
            merged["content"]["text"] = "".join(merged.pop("_parts"))
            self._keep(merged)

    def _keep(self, update: Json) -> None:
        self.updates.append(update)
        self._lines.append(msgspec.json.encode({"update": update}))

    def add_messages(self, encoded: list[bytes]) -> None:
        self.messages += encoded
        self._lines += [b'{"message":%b}' % message for message in encoded]

    def replace_messages(self, encoded: list[bytes]) -> None:
        """A compaction: replace all messages so far by these."""
        self._lines.append(msgspec.json.encode({"forget": len(self.messages)}))
        self.messages = []
        self.add_messages(encoded)

    def flush(self, facts: Facts) -> None:
        """Append the new lines to the file; if that fails they are lost, and the session continues."""
        self._close_message()
        facts.updated = time.time()
        self.facts = facts
        if self._file is None:
            return
        lines, self._lines = self._lines, []
        lines.append(msgspec.json.encode({"facts": facts}))
        try:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "ab") as file:
                file.write(b"\n".join(lines) + b"\n")
        except OSError as error:
            log.warning("the session is not saved: %s", error)


class Archive:
    """The folder of all sessions."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def file(self, session: str) -> Path | None:
        if self._folder is None or not _ID.fullmatch(session):
            return None
        return self._folder / f"{session}.jsonl"

    def load(self, session: str) -> History | None:
        """None if there is no such session."""
        file = self.file(session)
        if file is None:
            return None
        try:
            history = History.load(file)
        except FileNotFoundError:
            return None
        return history if history.facts is not None else None

    def sessions(self) -> Iterator[tuple[str, Facts]]:
        """All stored sessions, the last used first."""
        if self._folder is None or not self._folder.is_dir():
            return
        found = []
        for file in self._folder.glob("*.jsonl"):
            facts = _last_facts(file)
            if facts is not None:
                found.append((file.stem, facts))
        yield from sorted(found, key=lambda each: each[1].updated, reverse=True)

    def delete(self, session: str) -> None:
        file = self.file(session)
        if file is not None:
            file.unlink(missing_ok=True)


def _last_facts(file: Path) -> Facts | None:
    """The newest facts, read from the end of the file: they are the last line of every flush."""
    try:
        with file.open("rb") as stream:
            stream.seek(0, os.SEEK_END)
            stream.seek(max(0, stream.tell() - 64 * 1024))
            tail = stream.read()
    except OSError:
        return None
    for raw in reversed(tail.splitlines()):
        if raw.startswith(b'{"facts"'):
            try:
                return msgspec.json.decode(raw, type=_Line).facts
            except (msgspec.DecodeError, msgspec.ValidationError):
                continue
    return None


def _text(update: Json) -> str | None:
    content = update.get("content")
    if isinstance(content, dict) and content.get("type") == "text":
        return str(content.get("text", ""))
    return None
