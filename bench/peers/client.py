"""A client that does nothing but count while the clock runs; what it received is checked afterwards."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType

from bench.peers.talk import READ_SIZE, ConversationError, Talk

END_TIMEOUTS = (3.0, 2.0, 2.0)


class Conversation(Talk):
    """One contender's process and the client end of its pipes.

    The process leads its own group; only that group is signalled when it does not end by itself.
    """

    MARK = b"\n"

    def __init__(self, command: list[str], env: dict[str, str], cwd: Path) -> None:
        super().__init__()
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the conversation
        self._name = Path(command[0]).name
        self.started = time.perf_counter()
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            bufsize=0,
            env=env,
            cwd=cwd,
            start_new_session=True,
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._in, self._out = self._process.stdin.fileno(), self._process.stdout.fileno()
        self._poll = select.poll()
        self._poll.register(self._out, select.POLLIN | select.POLLHUP)

    def __enter__(self) -> Conversation:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    def close(self) -> None:
        """Close stdin and wait; a process that stays is signalled, then killed, all bounded."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        for timeout, number in zip(END_TIMEOUTS, (signal.SIGTERM, signal.SIGKILL, None), strict=True):
            try:
                self._process.wait(timeout)
                break
            except subprocess.TimeoutExpired:
                if number is not None:
                    os.killpg(self._process.pid, number)
        self._process.stdout.close()
        self._stderr.close()

    def write(self, data: bytes) -> None:
        try:
            os.write(self._in, data)
        except BrokenPipeError:
            raise self._failure("closed its stdin") from None

    def complete(self, chunks: list[bytes]) -> bool:
        return chunks[-1].endswith(b"\n")

    def read(self, timeout: float) -> bytes:
        """Read what the pipe holds, within `timeout` seconds."""
        if not self._poll.poll(max(0.0, timeout) * 1000):
            raise self._failure("stayed silent too long")
        chunk = os.read(self._out, READ_SIZE)
        if not chunk:
            raise self._failure("closed its stdout")
        return chunk

    def _failure(self, what: str) -> ConversationError:
        code = self._process.poll()
        # At a position of its own: the child shares this file's offset and would write over its last words.
        end = os.fstat(self._stderr.fileno()).st_size
        tail = os.pread(self._stderr.fileno(), 2000, max(0, end - 2000)).decode(errors="replace").strip()
        state = "" if code is None else f" (exit code {code})"
        return ConversationError(f"{self._name} {what}{state}\n{tail}".strip())
