"""Log lines: one line per event, never on stdout, and never in the way.

Anything passed as `extra={"session": ...}` becomes a field of the line, and so does what `ABOUT` says the present work
is for. Log no secrets, and what people or agents said only through `said`.
A reader of stderr that is slow, gone or full costs log lines, not sessions: nothing here blocks or raises. Lines
that can wait are made a moment later and together, so that no turn waits for them.
"""

from __future__ import annotations

import functools
import json
import logging
import os
import select
import sys
import time
from collections import deque
from collections.abc import Mapping
from contextlib import nullcontext
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Literal

from dragoman.masking import mask, mask_text
from dragoman.terminal import escape, escape_json

if TYPE_CHECKING:
    import asyncio

ABOUT: ContextVar[Mapping[str, object]] = ContextVar("about", default={})  # noqa: B039 (never written to)
"""The session, client and request that the present work is done for."""

LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}
SAFE_WRITE = 4096
"""POSIX: a pipe that is ready to be written takes PIPE_BUF bytes without blocking; Linux has 4096."""
LINGER = 0.02
"""Seconds that a line may wait for others; one that warns does not wait, and takes those before it along."""
MOST_WAITING = 100
MAX_VALUE = 2000
"""An agent's stderr or a peer's message quoted in a line must not flood the log."""

_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName", "about"}
_QUOTED = frozenset(' "=')
_COLOURS = {10: "\x1b[2m", 20: "\x1b[36m", 30: "\x1b[33m", 40: "\x1b[31m", 50: "\x1b[31;1m"}
_PLAIN_RESET = "\x1b[0m"


_prompts = False


def setup(
    level: str = "info",
    file: str | None = None,
    format: Literal["text", "json"] = "text",
    prompts: bool = False,
) -> None:
    """Send the log to `file`, or else to stderr; raises OSError only if `file` cannot be opened.

    Only with `prompts` does `said` let through what was said.
    """
    global _prompts
    _prompts = prompts
    root = logging.getLogger("dragoman")
    handler = _handler(file)
    if handler is None:
        handler = logging.NullHandler()
    elif format == "json":
        handler.setFormatter(JsonLine())
    elif file is None and os.isatty(2):
        handler.setFormatter(HumanLine(colour="NO_COLOR" not in os.environ))
    else:
        handler.setFormatter(FieldLine())
    for old in list(root.handlers):
        root.removeHandler(old)
        old.close()
    root.addHandler(handler)
    root.setLevel(LEVELS[level])
    root.propagate = False
    logging.raiseExceptions = False
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    logging._srcfile = None  # nobody is told the line of code, and to find it costs more than all the rest


def said(words: bytes | str) -> str:
    """What somebody said, for a line of the log: its length, unless the log may have the words."""
    if not _prompts:
        return (
            f"({len(words)} {'bytes' if isinstance(words, bytes) else 'characters'}; log.prompts shows them)"
        )
    return words.decode("utf-8", "replace") if isinstance(words, bytes) else words


def without_secrets(words: str) -> str:
    """What a peer said about itself, bounded and without what is a secret by its name or its look."""
    return mask_text(words[:MAX_VALUE])


def prompts_wanted() -> bool:
    return _prompts


def _handler(file: str | None) -> logging.Handler | None:
    if file is not None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        return FdHandler(os.open(os.path.expanduser(file), flags, 0o600), owned=True)  # noqa: PTH111
    return FdHandler(2) if sys.stderr is not None else None  # closed at start: fd 2 may be anything by now


class FdHandler(logging.Handler):
    """Writes lines to a file descriptor if it takes them at once, and counts those that it does not."""

    def __init__(self, fd: int, owned: bool = False) -> None:
        super().__init__()
        self._fd = fd
        self._owned = owned
        self._waiting: deque[logging.LogRecord] = deque()
        self._dropped = 0
        self._torn = False
        self._poll = select.poll()
        self._poll.register(fd, select.POLLOUT)

    def emit(self, record: logging.LogRecord) -> None:
        record.about = ABOUT.get()
        loop = _running_loop()
        if loop is not None and not self._waiting:
            loop.call_later(LINGER, self.flush)
        self._waiting.append(record)
        # In another thread, or when there is no loop any more, there is nobody to do it later.
        if loop is None or record.levelno >= logging.WARNING or len(self._waiting) >= MOST_WAITING:
            self._write_all()

    def flush(self) -> None:
        with self.lock or nullcontext():
            self._write_all()

    def _write_all(self) -> None:
        while self._waiting:
            self._write_line(self._waiting.popleft())

    def _write_line(self, record: logging.LogRecord) -> None:
        try:
            line = self.format(record)
        except Exception as error:  # noqa: BLE001 (a bad log call must not end a session)
            line = f"level=error logger=dragoman.log msg={json.dumps(f'cannot format a log line: {error}')}"
        data = line.encode("utf-8", "backslashreplace") + b"\n"
        if self._dropped:
            data = b'level=warning logger=dragoman.log msg="%d lines lost"\n%s' % (self._dropped, data)
        if self._torn:
            data = b"\n" + data
        if self._write(data):
            self._dropped = 0
        else:
            self._dropped += 1

    def _write(self, data: bytes) -> bool:
        """Whether all of it went out."""
        rest = memoryview(data)
        try:
            while rest:
                ready = self._poll.poll(0)
                if not ready or ready[0][1] & (select.POLLERR | select.POLLNVAL):
                    break
                rest = rest[os.write(self._fd, rest[:SAFE_WRITE]) :]
        except OSError:
            pass  # a full disk, a reader that is gone: the count tells, if ever there is a reader again
        if len(rest) < len(data):
            self._torn = bool(rest)
        return not rest

    def close(self) -> None:
        self.flush()
        if self._owned:
            os.close(self._fd)
            self._owned = False
        super().close()


def _running_loop() -> asyncio.AbstractEventLoop | None:
    """Without loading asyncio, which the first lines of a start can do without."""
    events = sys.modules.get("asyncio.events")
    return events._get_running_loop() if events is not None else None


def fields(record: logging.LogRecord) -> dict[str, Any]:
    """What the caller passed as `extra`, and what its work is for."""
    passed = {key: value for key, value in record.__dict__.items() if key not in _STANDARD}
    about: Mapping[str, object] = getattr(record, "about", None) or ABOUT.get()
    return {**{key: value for key, value in about.items() if value is not None}, **passed}


class JsonLine(logging.Formatter):
    """One JSON object per line, for machines."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": _utc(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _cut(record.getMessage()),
        }
        for key, value in fields(record).items():
            line.setdefault(key, value if isinstance(value, (int, float, bool)) else _cut(str(value)))
        if record.exc_info:
            line["exception"] = mask(self.formatException(record.exc_info))
        return _quoted(line)


class FieldLine(logging.Formatter):
    """`time=... level=... logger=... msg=... key=value`, for files and for people with grep."""

    def format(self, record: logging.LogRecord) -> str:
        parts = [
            f"time={_utc(record)}",
            f"level={record.levelname.lower()}",
            f"logger={record.name}",
            f"msg={_quoted(_cut(record.getMessage()))}",
        ]
        parts += _pairs(record)
        if record.exc_info:
            parts.append(f"exception={_quoted(mask(self.formatException(record.exc_info)))}")
        return " ".join(parts)


class HumanLine(logging.Formatter):
    """A line for someone who watches a terminal."""

    def __init__(self, colour: bool) -> None:
        super().__init__()
        self._colour = colour

    def format(self, record: logging.LogRecord) -> str:
        clock = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(record.created))
        level = f"{record.levelname.lower():<7}"
        if self._colour:
            level = f"{_COLOURS.get(record.levelno, '')}{level}{_PLAIN_RESET}"
        name = record.name.removeprefix("dragoman.")
        parts = [f"{clock}.{int(record.msecs):03d}", level, name, escape(_cut(record.getMessage()))]
        line = " ".join(parts + _pairs(record))
        if record.exc_info:
            line += "\n" + "\n".join(map(escape, mask(self.formatException(record.exc_info)).split("\n")))
        return line


def _utc(record: logging.LogRecord) -> str:
    return f"{_second(int(record.created))}.{int(record.msecs):03d}Z"


@functools.lru_cache(maxsize=2)
def _second(since_epoch: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(since_epoch))


def _pairs(record: logging.LogRecord) -> list[str]:
    return [f"{key}={_value(value)}" for key, value in fields(record).items()]


def _value(value: object) -> str:
    text = _cut(str(value))
    plain = text and text.isprintable() and _QUOTED.isdisjoint(text)
    return text if plain else _quoted(text)


def _quoted(value: object) -> str:
    """As JSON, on one line that drives no terminal, whether it is read now or later with `tail`."""
    return escape_json(json.dumps(value, ensure_ascii=False))


def _cut(text: str) -> str:
    text = mask(text)
    return text if len(text) <= MAX_VALUE else f"{text[:MAX_VALUE]}... ({len(text)} characters)"
