"""What an agent wrote to its stderr: always drained, only the end of it kept (G-112)."""

from __future__ import annotations

import logging
import re
from collections import deque

from dragoman.log import said
from dragoman.terminal import clean
from dragoman.wire import limits

logger = logging.getLogger(__name__)

# Colours and titles mean nothing in an error message: they go as a whole; `clean` takes what would act on a terminal.
_COLOURS = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")


class StderrTail:
    """A ring of the last lines."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lines: deque[bytes] = deque(maxlen=limits.STDERR_TAIL_LINES)
        self._partial = b""

    def feed(self, data: bytes) -> None:
        head, newline, rest = data.partition(b"\n")
        self._partial += head[: limits.STDERR_LINE_BYTES - len(self._partial)]
        if not newline:
            return
        lines = rest.split(b"\n")
        lines.insert(0, self._partial)
        self._partial = lines.pop()[: limits.STDERR_LINE_BYTES]
        # A flood costs one split per read: only what the ring keeps is copied, decoding waits until
        # somebody asks.
        self._lines.extend(line[: limits.STDERR_LINE_BYTES] for line in lines[-limits.STDERR_TAIL_LINES :])
        if logger.isEnabledFor(logging.DEBUG):
            extra = {"agent": self._name}
            for line in lines:
                logger.debug("stderr: %s", said(_readable(line[: limits.STDERR_LINE_BYTES])), extra=extra)

    def text(self) -> str:
        """The kept lines, oldest first, without escape sequences and blank lines."""
        readable = (_readable(line) for line in (*self._lines, self._partial))
        return "\n".join(line for line in readable if line)


def _readable(line: bytes) -> str:
    return clean(_COLOURS.sub("", line.decode("utf-8", "replace"))).rstrip()
