"""An agent's stderr: always drained, only its last lines are stored (G-112)."""

from __future__ import annotations

import logging
import re
from collections import deque

from dragoman.log import redact_prompt
from dragoman.terminal import clean
from dragoman.wire import limits

logger = logging.getLogger(__name__)

# Colours and titles are useless in an error message and removed here; `clean` removes other control characters.
_COLOURS = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")


class StderrTail:
    """A ring buffer of the last lines."""

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
        # A flood costs one split per read: only lines that the ring stores are copied, and `text`
        # decodes them.
        self._lines.extend(line[: limits.STDERR_LINE_BYTES] for line in lines[-limits.STDERR_TAIL_LINES :])
        if logger.isEnabledFor(logging.DEBUG):
            extra = {"agent": self._name}
            for line in lines:
                logger.debug(
                    "stderr: %s", redact_prompt(_readable(line[: limits.STDERR_LINE_BYTES])), extra=extra
                )

    def text(self) -> str:
        """The stored lines, oldest first, without escape sequences and blank lines."""
        readable = (_readable(line) for line in (*self._lines, self._partial))
        return "\n".join(line for line in readable if line)


def _readable(line: bytes) -> str:
    return clean(_COLOURS.sub("", line.decode("utf-8", "replace"))).rstrip()
