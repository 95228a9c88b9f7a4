"""Logging: one line per event, never on stdout, never blocking.

Each key of `extra={"session": ...}` and of `LOG_CONTEXT` becomes a field of the line. Log no secrets, and text of users
or agents only through `redact_prompt`.
If the log's target is slow, closed or full, lines are dropped: nothing here blocks or raises. Lines below warning level
are formatted and written a moment later in batches, so that no turn waits for them.
"""

from __future__ import annotations

import functools
import json
import logging
import os
import re
import select
import sys
import time
from collections import deque
from collections.abc import Mapping
from contextlib import nullcontext
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Literal, cast

from dragoman.masking import mask, mask_text
from dragoman.terminal import escape, escape_json

if TYPE_CHECKING:
    import asyncio

LOG_CONTEXT: ContextVar[Mapping[str, object]] = ContextVar("about", default={})  # noqa: B039 (never written to)
"""Log fields of the current work: its session, client and request."""

LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}
SAFE_WRITE = min(4096, select.PIPE_BUF)
"""Bytes per write. POSIX: a writable pipe takes PIPE_BUF bytes without blocking; 4096 on Linux, 512 on macOS."""
LINGER = 0.02
"""Seconds that a line may wait for others; a warning or an error is written at once, with all lines before it."""
MOST_WAITING = 100
MOST_AT_ONCE = 4
"""Lines written in one iteration of the event loop."""
MAX_VALUE = 2000
"""Characters of one value: an agent's stderr or a peer's message quoted in a line must not flood the log."""

_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName", "about"}
_QUOTED = frozenset(' "=')
_PLAIN = re.compile(r"[A-Za-z0-9_.:-]{1,80}")
"""Ids, names and numbers, which need neither quotes nor masking."""
_COLOURS = {10: "\x1b[2m", 20: "\x1b[36m", 30: "\x1b[33m", 40: "\x1b[31m", 50: "\x1b[31;1m"}
_PLAIN_RESET = "\x1b[0m"


_prompts = False
_quick: FdHandler | None = None
"""The handler that `note` writes to directly; None if logging is off or not set up."""


def setup(
    level: str = "info",
    file: str | None = None,
    format: Literal["text", "json"] = "text",
    prompts: bool = False,
) -> None:
    """Send the log to `file`, or else to stderr; raises OSError only if `file` cannot be opened.

    With `prompts`, `redact_prompt` returns the text itself instead of its length.
    """
    global _prompts, _quick
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
    _quick = handler if isinstance(handler, FdHandler) else None
    root.setLevel(LEVELS[level])
    root.propagate = False
    logging.raiseExceptions = False
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    logging._srcfile = None  # no formatter prints the source line, and finding it costs more than the rest


def note(logger: logging.Logger, message: str, facts: Mapping[str, object]) -> None:
    """A cheaper `logger.info(message, extra=facts)` for lines of every turn: the line is formatted later.

    `LOG_CONTEXT` is not added: `facts` must hold session, client and request.
    """
    if not logger.isEnabledFor(logging.INFO):
        return
    if _quick is None:
        logger.info(message, extra=facts)
    else:
        _quick.add_note(Note(logger.name, message, facts))


def redact_prompt(words: bytes | str) -> str:
    """Text of a user or an agent for a log line: its length only, unless `log.prompts` is set."""
    if not _prompts:
        return (
            f"({len(words)} {'bytes' if isinstance(words, bytes) else 'characters'}; log.prompts shows them)"
        )
    return words.decode("utf-8", "replace") if isinstance(words, bytes) else words


def without_secrets(words: str) -> str:
    """Text from a peer for a log line: cut to `MAX_VALUE`, secrets masked by name and by pattern."""
    return mask_text(words[:MAX_VALUE])


def prompts_wanted() -> bool:
    return _prompts


def _handler(file: str | None) -> logging.Handler | None:
    if file is not None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        return FdHandler(os.open(os.path.expanduser(file), flags, 0o600), owned=True)  # noqa: PTH111
    return FdHandler(2) if sys.stderr is not None else None  # None: closed at start, fd 2 may be any file


class Note:
    """A minimal `logging.LogRecord`: only the attributes that the formatters need."""

    __slots__ = ("created", "facts", "message", "name")
    levelno, levelname, exc_info = logging.INFO, "INFO", None

    def __init__(self, name: str, message: str, facts: Mapping[str, object]) -> None:
        self.name = name
        self.message = message
        self.facts = facts
        self.created = time.time()

    @property
    def msecs(self) -> float:
        return self.created % 1 * 1000

    def getMessage(self) -> str:  # noqa: N802 (as logging has it)
        return self.message


class FdHandler(logging.Handler):
    """Writes lines to a file descriptor without blocking; lines that it does not take are dropped and counted."""

    def __init__(self, fd: int, owned: bool = False) -> None:
        super().__init__()
        self._fd = fd
        self._owned = owned
        self._waiting: deque[logging.LogRecord | Note] = deque()
        self._dropped = 0
        self._torn = False
        self._poll = select.poll()
        self._poll.register(fd, select.POLLOUT)

    def emit(self, record: logging.LogRecord) -> None:
        self.add(record)

    def add(self, record: logging.LogRecord | Note) -> None:
        if not isinstance(record, Note):
            record.about = LOG_CONTEXT.get()
        loop = _running_loop()
        if loop is not None and not self._waiting:
            loop.call_later(LINGER, self._write_some, loop)
        self._waiting.append(record)
        # Without a running loop, as in another thread or at exit, no timer can write the line later.
        if loop is None or record.levelno >= logging.WARNING or len(self._waiting) >= MOST_WAITING:
            self._write_all()

    def add_note(self, note: Note) -> None:
        with self.lock or nullcontext():
            if 0 < len(self._waiting) < MOST_WAITING - 1:
                self._waiting.append(note)  # the timer of the first waiting line runs
            else:
                self.add(note)

    def flush(self) -> None:
        with self.lock or nullcontext():
            self._write_all()

    def _write_some(self, loop: asyncio.AbstractEventLoop) -> None:
        """Write a few lines in each loop iteration, so that requests do not wait for all of them."""
        with self.lock or nullcontext():
            self._write_lines(MOST_AT_ONCE)
        if self._waiting:
            loop.call_soon(self._write_some, loop)

    def _write_all(self) -> None:
        while self._waiting:
            self._write_lines(MOST_WAITING)

    def _write_lines(self, most: int) -> None:
        """Write up to `most` waiting lines together, as many as fit into `SAFE_WRITE` bytes, but at least one."""
        data, count = b"", 0
        while self._waiting and count < most:
            line = self._line(self._waiting[0])
            if data and len(data) + len(line) > SAFE_WRITE:
                break
            self._waiting.popleft()
            data, count = data + line, count + 1
        if self._dropped:
            data = b'level=warning logger=dragoman.log msg="%d lines lost"\n%s' % (self._dropped, data)
        if self._torn:
            data = b"\n" + data
        self._dropped = 0 if self._write(data) else self._dropped + count

    def _line(self, record: logging.LogRecord | Note) -> bytes:
        try:
            line = self.format(cast("logging.LogRecord", record))
        except Exception as error:  # noqa: BLE001 (a bad log call must not end a session)
            line = f"level=error logger=dragoman.log msg={json.dumps(f'cannot format a log line: {error}')}"
        return line.encode("utf-8", "backslashreplace") + b"\n"

    def _write(self, data: bytes) -> bool:
        """Write without blocking; returns whether all of `data` was written."""
        rest = memoryview(data)
        try:
            while rest:
                ready = self._poll.poll(0)
                if not ready or ready[0][1] & (select.POLLERR | select.POLLNVAL):
                    break
                rest = rest[os.write(self._fd, rest[:SAFE_WRITE]) :]
        except OSError:
            pass  # full disk or closed pipe: the lines count as lost, which is logged once writing works again
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
    """The running event loop, without importing asyncio: the first lines of a start do not need it."""
    events = sys.modules.get("asyncio.events")
    return events._get_running_loop() if events is not None else None


def fields(record: logging.LogRecord | Note) -> Mapping[str, Any]:
    """The fields of a line: those of `LOG_CONTEXT`, and what the caller passed as `extra`."""
    if isinstance(record, Note):
        return record.facts
    about: Mapping[str, object] = getattr(record, "about", None) or LOG_CONTEXT.get()
    passed = {key: value for key, value in record.__dict__.items() if key not in _STANDARD}
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
    """`time=... level=... logger=... msg=... key=value`, for files and grep."""

    def format(self, record: logging.LogRecord) -> str:
        parts = [
            f"time={_utc(record)}",
            f"level={record.levelname.lower()}",
            f"logger={record.name}",
            f"msg={_message(record.getMessage())}",
        ]
        parts += _pairs(record)
        if record.exc_info:
            parts.append(f"exception={_quoted(mask(self.formatException(record.exc_info)))}")
        return " ".join(parts)


class HumanLine(logging.Formatter):
    """A line for a user at a terminal."""

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
    kind = type(value)
    if kind is int or kind is float:
        return str(value)
    text = str(value)
    return text if _PLAIN.fullmatch(text) else _text(text)


@functools.lru_cache(maxsize=512)
def _message(text: str) -> str:
    return _quoted(_cut(text))


@functools.lru_cache(maxsize=1024)
def _text(text: str) -> str:
    """The value, quoted if needed; cached, since the same sessions, agents and outcomes recur in many lines."""
    text = _cut(text)
    plain = text and text.isprintable() and _QUOTED.isdisjoint(text)
    return text if plain else _quoted(text)


def _quoted(value: object) -> str:
    """The value as one line of JSON; terminal control characters are escaped, since logs are read with `tail`."""
    return escape_json(json.dumps(value, ensure_ascii=False))


def _cut(text: str) -> str:
    text = mask(text)
    return text if len(text) <= MAX_VALUE else f"{text[:MAX_VALUE]}... ({len(text)} characters)"
