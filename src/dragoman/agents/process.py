"""An agent as a subprocess: a link over its stdin and stdout, its stderr, and its end.

Theory of operation. The end of an agent has two signs, its exit and the end of its stdout, in either order:

    exit, then EOF    the usual: all output is delivered, then the link closes
    exit, no EOF      a process that it started holds its stdout; that one is ended, within `GOODBYE` at most
    EOF, no exit      it cannot send any more; it gets `GOODBYE` to exit with a status
    stdin broken      it cannot receive any more; likewise

At the first sign, the agent and all processes that it started are ended: stdin is closed, then custody sends signals
to those that are left (G-113). The link closes once; nothing is delivered after that.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from dragoman.agents.custody import Child, Custody, CustodyError, Launch, Ward
from dragoman.agents.program import Pipes, SpawnError, explain, find_program
from dragoman.agents.stderr import StderrTail
from dragoman.gateway.ports.agent import AgentEnd
from dragoman.gateway.ports.sandbox import Enclosed
from dragoman.rpc.call import happens
from dragoman.rpc.link import LinkHandler
from dragoman.rpc.outbox import Outbox
from dragoman.rpc.pipe import LoopPipe
from dragoman.wire import limits
from dragoman.wire.framing import LineDecoder

LEAVE_PATIENCE = 5.0
"""Seconds from closing an agent's stdin to the first signal (G-113); codex-acp takes up to 3.8."""

GOODBYE = 1.0
"""Seconds to wait for the second sign of an agent's end before the link is closed without it."""


@dataclass(frozen=True, slots=True)
class ExitStatus:
    """How a process ended: by an exit code or by a signal."""

    exit_code: int | None
    signal: str | None

    @classmethod
    def of(cls, returncode: int | None) -> ExitStatus:
        """`returncode` as in `subprocess`; None if unknown."""
        if returncode is None or returncode >= 0:
            return cls(returncode, None)
        known = {member.value: member.name for member in signal.Signals}
        return cls(None, known.get(-returncode, f"signal {-returncode}"))

    def __str__(self) -> str:
        if self.signal is not None:
            return f"was killed by {self.signal}"
        return f"exited with code {self.exit_code}" if self.exit_code is not None else "ended"


class AgentProcess:
    """A running agent; implements `Link` and `AgentHandle`."""

    def __init__(
        self,
        child: Child,
        pipes: Pipes,
        handler: LinkHandler,
        custody: Custody,
        ward: Ward,
        max_message_bytes: int,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._child = child
        self._pipes = pipes
        self._handler = handler
        self._custody = custody
        self._ward = ward
        self._decoder = LineDecoder(max_message_bytes)
        self._outbox = Outbox(self._loop, handler.link_writable)
        self.flush = self._outbox.flush
        self._stderr = StderrTail(f"agent {child.pid}")
        self._paused = False
        self._stdout_ended = False
        self._stderr_ended = False
        self._exit: ExitStatus | None = None
        self._exited = asyncio.Event()
        self._link_closed = asyncio.Event()
        self._wanted = False  # whether we requested the end
        self._ending: asyncio.Future[None] | None = None
        self._connected: list[asyncio.BaseTransport] = []

    @classmethod
    async def spawn(
        cls,
        command: Sequence[str],
        *,
        handler: LinkHandler,
        custody: Custody,
        env: Mapping[str, str],
        cwd: str | None = None,
        max_message_bytes: int = limits.MAX_MESSAGE_BYTES,
    ) -> Self:
        """Start an agent in its own session and in custody; raises `SpawnError`."""
        program = find_program(command, env, cwd)
        starting = asyncio.ensure_future(
            cls._start(program, command, handler, custody, env, cwd, max_message_bytes)
        )
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            starting.add_done_callback(_give_up)
            raise

    @classmethod
    async def _start(
        cls,
        program: str,
        command: Sequence[str],
        handler: LinkHandler,
        custody: Custody,
        env: Mapping[str, str],
        cwd: str | None,
        max_message_bytes: int,
    ) -> Self:
        pipes: Pipes | None = None
        try:
            pipes = Pipes()
            ward, child = await custody.launch(Launch(program, command, env, cwd, pipes.theirs))
        except (OSError, CustodyError) as error:
            if pipes is not None:
                pipes.close_ours()
            reason = explain(command[0], error, cwd) if isinstance(error, OSError) else str(error)
            raise SpawnError(reason) from error
        finally:
            if pipes is not None:
                pipes.close_theirs()
        process = cls(child, pipes, handler, custody, ward, max_message_bytes)
        handler.link_opened(process)
        try:
            await process._connect()
        except OSError as error:  # no descriptors left: an agent without pipes must be ended now
            process._ending = asyncio.ensure_future(process._end_unconnected())
            await asyncio.shield(process._ending)
            raise SpawnError(explain(command[0], error)) from error
        return process

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def exit(self) -> ExitStatus | None:
        """How the process ended; None while it runs."""
        return self._exit

    def stderr_tail(self) -> str:
        """The last lines that the agent wrote to stderr."""
        return self._stderr.text()

    def end(self) -> AgentEnd:
        status = self._exit or ExitStatus(None, None)
        return AgentEnd(status.exit_code, status.signal, self.stderr_tail())

    def send(self, message: bytes) -> None:
        if self._ending is None:
            self._outbox.send(message)

    @property
    def backlog(self) -> int:
        return self._outbox.backlog

    def pause(self) -> None:
        # After the exit at most one pipe buffer is left to read: cheaper to deliver it now.
        if self._paused or self._stdout_ended or self._exit is not None:
            return
        self._paused = True
        self._stdout_pipe.pause_reading()

    def resume(self) -> None:
        if self._paused:
            self._paused = False
            self._stdout_pipe.resume_reading()

    def close(self) -> None:
        """Write queued messages, close stdin and end the agent; like `stop`, without waiting."""
        self._end(wanted=True, patience=LEAVE_PATIENCE)

    async def stop(self, patience: float = LEAVE_PATIENCE) -> None:
        """End the agent and all processes it started: close stdin, wait `patience` seconds, then custody sends signals.

        Idempotent; a stop in progress keeps its own patience.
        """
        self._end(wanted=True, patience=patience)
        await self.wait_closed()

    async def has_process_since(self, moment: float) -> bool:
        """Whether a process that the agent started after `moment` of the monotonic clock still runs."""
        return await self._custody.has_process_since(self._ward, moment)

    async def wait_closed(self) -> None:
        """Wait until the link is closed and all processes of the agent have ended."""
        await self._link_closed.wait()
        if self._ending is not None:
            await asyncio.shield(self._ending)

    async def _connect(self) -> None:
        """Connect the loop to the child's pipes, and only then watch for its exit."""
        connect_read, pipes = self._loop.connect_read_pipe, self._pipes
        outgoing = Outgoing(self._outbox, self._begin_goodbye)
        stdout = Incoming(self._on_stdout, self._on_stdout_end)
        stderr = Incoming(self._stderr.feed, self._on_stderr_end)
        stdin = LoopPipe(pipes.stdin)
        self._stdin_pipe, _ = await self._loop.connect_write_pipe(lambda: outgoing, stdin)
        self._connected.append(self._stdin_pipe)
        self._outbox.attach(self._stdin_pipe)
        self._stderr_pipe, _ = await connect_read(lambda: stderr, LoopPipe(pipes.stderr))
        self._connected.append(self._stderr_pipe)
        self._stdout_pipe, _ = await connect_read(lambda: stdout, LoopPipe(pipes.stdout))
        self._child.on_exit(self._on_exit)

    async def _end_unconnected(self) -> None:
        """End a child whose pipes could not be connected to the loop."""
        self._link_closed.set()  # it was never open
        try:
            await self._custody.end(self._ward)
        finally:  # custody needs a descriptor too, and may fail
            self._child.kill()
            for transport in self._connected:
                transport.close()
            self._pipes.close_ours()

    def _on_stdout(self, data: bytes) -> None:
        if self._link_closed.is_set():
            return
        frames = self._decoder.feed(data)
        if frames:
            self._handler.link_messages(frames)

    def _on_stdout_end(self) -> None:
        self._stdout_ended = True
        self._paused = False
        self._begin_goodbye()

    def _on_stderr_end(self) -> None:
        self._stderr_ended = True
        self._close_link_if_all_ended()

    def _on_exit(self, returncode: int | None) -> None:
        self._exit = ExitStatus.of(returncode)
        self._exited.set()
        self.resume()
        self._begin_goodbye()

    def _begin_goodbye(self) -> None:
        """At the first sign of the agent's end, end the rest of it."""
        self._end(wanted=False, patience=GOODBYE)
        self._close_link_if_all_ended()
        if self._exit is not None or not self._wanted:
            self._loop.call_later(GOODBYE, self._close_link)

    def _close_link_if_all_ended(self) -> None:
        # stderr too: its last lines usually have the reason.
        if self._exit is not None and self._stdout_ended and self._stderr_ended:
            self._close_link()

    def _close_link(self) -> None:
        if self._link_closed.is_set():
            return
        self._link_closed.set()
        self._handler.link_closed(None if self._wanted else self._reason())

    def _reason(self) -> str:
        if self._exit is None:
            return "agent closed its stdout" if self._stdout_ended else "agent closed its stdin"
        return f"agent {self._exit}"

    def _end(self, *, wanted: bool, patience: float) -> None:
        if self._ending is None:
            self._wanted = wanted
            self._ending = self._loop.create_task(self._end_in_steps(patience))

    async def _end_in_steps(self, patience: float) -> None:
        """Wait for the agent to exit by itself, end its remaining processes, and close the pipes."""
        if self._exit is None:
            # Before it can exit: after that its children may be orphans that nothing links to it.
            await self._custody.look(self._ward)
        self._outbox.close()
        await happens(self._exited, patience)
        await self._custody.end(self._ward)
        await happens(self._exited, GOODBYE)
        await happens(self._link_closed, GOODBYE)
        self._close_link()
        if self._stdin_pipe.get_write_buffer_size():
            self._stdin_pipe.abort()  # unread data, and a process still holds the other end
        self._stdout_pipe.close()
        self._stderr_pipe.close()


def _give_up(starting: asyncio.Future[Any]) -> None:
    """End an agent whose caller was cancelled during the start."""
    if not starting.cancelled() and starting.exception() is None:
        starting.result().close()


class Incoming(asyncio.Protocol):
    """Passes on a child's output, and the end of the pipe."""

    def __init__(self, on_data: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
        self.data_received = on_data  # type: ignore[assignment]  # no extra call per message
        self._on_end = on_end

    def connection_lost(self, exc: Exception | None) -> None:
        self._on_end()


class Outgoing(asyncio.BaseProtocol):
    """Tells the outbox when the child reads too slowly, and calls `on_end` when it stops reading."""

    def __init__(self, outbox: Outbox, on_end: Callable[[], None]) -> None:
        self._outbox = outbox
        self._on_end = on_end

    def pause_writing(self) -> None:
        self._outbox.pause_writing()

    def resume_writing(self) -> None:
        self._outbox.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        # The agent broke the pipe; not an error of ours.
        self._on_end()


class BoxedAgent(AgentProcess):
    """An agent inside a sandbox; processes that it leaves running there are ended too."""

    _leaving: asyncio.Task[None] | None = None

    def enter_box(self, inside: Enclosed) -> None:
        """Send the preface and watch for the end; called right after the start, before anything else is sent."""
        if inside.preface:
            self.send(inside.preface.removesuffix(b"\n"))
        self._leaving = asyncio.get_running_loop().create_task(self._leave_box(inside))

    async def stop(self, patience: float = LEAVE_PATIENCE) -> None:
        await super().stop(patience)
        if self._leaving is not None:
            await asyncio.shield(self._leaving)

    async def _leave_box(self, inside: Enclosed) -> None:
        await self.wait_closed()
        await inside.leave()
