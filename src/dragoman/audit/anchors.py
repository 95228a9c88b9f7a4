"""Copies of the audit's heads elsewhere: a file on another disk, a URL, syslog, a collector of OTLP logs.

What is kept where the agents' user cannot change it proves that nothing before it was changed here. Each anchor has a
thread and a bounded queue of its own: one that does not answer holds up neither the audit nor the others.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import re
import threading
import urllib.error
import urllib.request
from collections import deque
from collections.abc import Callable, Iterable
from logging.handlers import SysLogHandler
from pathlib import Path
from time import monotonic
from urllib.parse import urlsplit, urlunsplit

from dragoman import masking
from dragoman.atomic_file import sync_data
from dragoman.audit import record
from dragoman.audit.folder import read_lines
from dragoman.config.errors import ConfigError
from dragoman.wire.timestamps import milliseconds

log = logging.getLogger(__name__)

QUEUE = 10_000
"""Lines that wait for an anchor that does not answer; then the oldest are dropped, which is told."""
TIMEOUT = 10.0
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
"""Seconds between attempts."""
AT_STOP = 3.0
"""Seconds that the end of the process waits for what is queued."""

_HEAD = re.compile(rb'\{"n":\d+,"at":"[^"]*","kind":"head"')

Send = Callable[[bytes], None]


class Anchor:
    def __init__(self, place: str, send: Send | None = None) -> None:
        self.place = masking.mask_setting(place)
        self._send = send or sender(place)
        self._lines: deque[tuple[float, bytes, bool]] = deque()
        """With the time when each was added, and whether it is a head."""
        self._changed = threading.Condition()
        self._dropped = 0
        self._busy = False
        self._stopped = False
        self._pausing = False
        """Whether it waits for the next attempt."""
        self.problem: str | None = None
        """Why the last attempt failed; None if it did not."""
        self._thread: threading.Thread | None = None

    def add(self, line: bytes) -> None:
        with self._changed:
            head = _HEAD.match(line) is not None
            if len(self._lines) >= QUEUE and not self._make_room(head):
                return
            self._lines.append((monotonic(), line, head))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="audit-anchor", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def _make_room(self, for_head: bool) -> bool:
        """Drop a line, the oldest record first: a head proves what is before it. False: the new one is dropped."""
        self._dropped += 1
        place = next((place for place, (*_, head) in enumerate(self._lines) if not head), None)
        if place is None and not for_head:
            return False
        del self._lines[place or 0]
        return True

    @property
    def waiting(self) -> int:
        return len(self._lines)

    @property
    def lag(self) -> float:
        """Seconds that the oldest line waits; 0 if none does."""
        with self._changed:
            return monotonic() - self._lines[0][0] if self._lines else 0.0

    def close(self, patience: float = AT_STOP) -> bool:
        """Wait a moment for what is queued; whether all of it was sent."""
        end = monotonic() + patience
        with self._changed:
            while (self._lines or self._busy) and monotonic() < end and not self._pausing:
                self._changed.wait(max(0.0, end - monotonic()))
            self._stopped = True
            self._changed.notify_all()
            return not self._lines and not self._busy

    def _run(self) -> None:
        pause = FIRST_PAUSE
        while True:
            with self._changed:
                while not self._lines and not self._stopped:
                    self._changed.wait()
                if self._stopped:
                    return
                line, self._busy, self._pausing = self._lines[0][1], True, False
            try:
                self._send(line)
            except Exception as error:  # noqa: BLE001 - of any library; the thread has to go on
                if _is_final(error):
                    self._refused(line, error)
                    continue
                self._failed(error)
            else:
                self._sent(line)
                pause = FIRST_PAUSE
                continue
            with self._changed:
                self._changed.wait_for(lambda: self._stopped, pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    def _sent(self, line: bytes) -> None:
        with self._changed:
            if self.problem is not None:
                log.warning("audit anchor answers again", extra={"anchor": self.place})
            self.problem = None
            self._forget(line)
            if self._dropped and not self._lines:
                log.error("audit anchor missed heads", extra={"anchor": self.place, "count": self._dropped})
                self._dropped = 0

    def _forget(self, line: bytes) -> None:
        self._busy = self._pausing = False
        if self._lines and self._lines[0][1] is line:
            self._lines.popleft()
        self._changed.notify_all()

    def _refused(self, line: bytes, error: Exception) -> None:
        """The place takes other lines, or none, but will never take this one."""
        text = _told(error)
        with self._changed:
            if self.problem != text:
                told = {"anchor": self.place, "error": text, "bytes": len(line)}
                log.error("audit anchor refuses a line; it is dropped", extra=told)
            self.problem = text
            self._dropped += 1
            self._forget(line)

    def _failed(self, error: Exception) -> None:
        text = _told(error)
        with self._changed:
            if self.problem is None:
                told = {"anchor": self.place, "error": text, "waiting": len(self._lines)}
                log.error("audit anchor does not take heads; they are queued", extra=told)
            self.problem, self._busy, self._pausing = text, False, True
            self._changed.notify_all()


def _told(error: Exception) -> str:
    return masking.mask_text(str(getattr(error, "reason", None) or error) or type(error).__name__)


def _is_final(error: Exception) -> bool:
    """Whether trying again is of no use: the line is too long, or the answer says so (RFC 9110, 15.5)."""
    if isinstance(error, urllib.error.HTTPError):
        return 400 <= error.code < 500 and error.code not in (408, 429)
    return isinstance(error, OSError) and error.errno == errno.EMSGSIZE


def sender(place: str) -> Send:
    """How lines get to a place of the configuration. Raises `ConfigError` for one that is not known."""
    scheme, _, rest = place.partition(":")
    if scheme == "file" and rest.startswith("/"):
        return _to_file(Path(rest))
    if scheme == "syslog":
        return _to_syslog(rest)
    if scheme in ("http", "https"):
        return lambda line: _post(place, line + b"\n", "application/x-ndjson")
    if scheme in ("otlp+http", "otlp+https"):
        url = _logs_url(place.removeprefix("otlp+"))
        return lambda line: _post(url, _otlp(line), "application/json")
    raise ConfigError(
        f'audit.anchors: "{masking.mask_setting(place)}" is not known; there are file:/PATH, https://URL, '
        "syslog: or syslog://HOST:PORT, and otlp+https://URL"
    )


def read_anchor(path: Path) -> Iterable[bytes]:
    """The heads that a file holds, for `verify`."""
    with path.open("rb") as file:  # it may be a pipe, of what was fetched from there
        yield from read_lines(file)


def _to_file(path: Path) -> Send:
    torn = False

    def send(line: bytes) -> None:
        nonlocal torn
        data = (b"\n" if torn else b"") + line + b"\n"
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            while data:  # a nearly full disk takes a part
                data = data[os.write(descriptor, data) :]
                torn = bool(data)
            sync_data(descriptor)
        finally:
            os.close(descriptor)

    return send


def _to_syslog(rest: str) -> Send:
    parts = urlsplit(f"syslog:{rest}")
    address: str | tuple[str, int] = "/dev/log"
    if parts.hostname:
        address = (parts.hostname, parts.port or 514)
    handlers: list[SysLogHandler] = []

    def send(line: bytes) -> None:
        if not handlers:
            handlers.append(_Syslog(address, SysLogHandler.LOG_AUTH))
        text = f"dragoman-audit: {line.decode(errors='replace')}"
        handlers[0].emit(logging.makeLogRecord({"msg": text, "levelno": logging.INFO, "levelname": "INFO"}))

    return send


class _Syslog(SysLogHandler):
    """Raises where the standard one prints a traceback."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - its name
        self.close()
        raise


def _post(url: str, body: bytes, kind: str) -> None:
    request = urllib.request.Request(url, body, {"Content-Type": kind})
    with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
        answer.read(1000)


def _logs_url(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(path=parts.path if parts.path.strip("/") else "/v1/logs"))


def _otlp(line: bytes) -> bytes:
    """One log record in the JSON form of OTLP."""
    head = record.read_head(line)
    body = {
        "timeUnixNano": str(milliseconds(head.at) * 1_000_000),
        "severityText": "INFO",
        "body": {"stringValue": line.decode()},
        "attributes": [{"key": "dragoman.audit.kind", "value": {"stringValue": head.kind}}],
    }
    name = {"key": "service.name", "value": {"stringValue": "dragoman"}}
    logs = {"scope": {"name": "dragoman.audit"}, "logRecords": [body]}
    return json.dumps({"resourceLogs": [{"resource": {"attributes": [name]}, "scopeLogs": [logs]}]}).encode()
