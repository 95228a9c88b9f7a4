"""Serves the file and terminal requests of a session's agent.

Files are read and written one at a time in the order of the requests, and a command starts after earlier writes:
an agent that writes a file and runs it need not wait in between. All other requests are answered at once.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from dragoman.agents.custody import Custody
from dragoman.agents.environment import QUIET, agent_environment
from dragoman.gateway.ports.sandbox import Box, Shared
from dragoman.gateway.ports.services import LocalServices
from dragoman.rpc.request import Request
from dragoman.services.files import Files
from dragoman.services.roots import Root, Roots
from dragoman.services.spawn import Spawn
from dragoman.services.terminals import Terminals
from dragoman.wire.errors import CANCELLED, RpcError, internal, method_not_found

log = logging.getLogger(__name__)

FILE_THREADS = 4
"""Threads for files only: a hanging network mount must not hold up the threads that end processes."""

MAX_WAITING = 1000
"""Maximum queued requests of one session: each write among them holds its text in memory."""

CLOSE_PATIENCE = 5.0
"""Seconds for the last write of a closing session."""

Answer = Callable[[bytes], Awaitable[bytes]]
"""Computes the result from the params."""


class WorkspaceServices:
    """Implements `ServicesFactory`."""

    def __init__(self, custody: Custody, *, environment: Mapping[str, str] = os.environ) -> None:
        self._environment = environment
        self._custody = custody
        self._threads: ThreadPoolExecutor | None = None

    def open(self, roots: Sequence[str], cwd: str, box: Box | None = None) -> LocalServices:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(FILE_THREADS, "files")
        folders = writable = Roots(roots)
        if box is not None and box.apart and not box.elsewhere:
            shared = box.shared()
            folders = _shown(shared, box.name)
            writable = _shown([root for root in shared if root.writable], box.name)
        around = agent_environment(self._environment, {}) if box is None else {**QUIET, **box.environment}
        terminals = Terminals(folders, cwd, around, Spawn(self._custody, box))
        return SessionServices(Files(folders, writable), terminals, self._threads)


def _shown(shared: Sequence[Shared], sandbox: str) -> Roots:
    return Roots([Root.of(root.path, root.covered, root.hidden) for root in shared], sandbox)


class SessionServices:
    """Implements `LocalServices`."""

    def __init__(self, files: Files, terminals: Terminals, threads: ThreadPoolExecutor) -> None:
        self._terminals = terminals
        self._threads = threads
        self._turn = asyncio.Lock()  # first come, first served
        self._tasks: set[asyncio.Task[None]] = set()
        self._waiting = 0
        self._closed = False
        self._in_order: Mapping[str, Answer] = {
            "fs/read_text_file": partial(self._in_thread, files.read),
            "fs/write_text_file": partial(self._in_thread, files.write),
            "terminal/create": terminals.create,
        }
        self._at_once: Mapping[str, Answer] = {
            "terminal/output": terminals.output,
            "terminal/wait_for_exit": terminals.wait_for_exit,
            "terminal/kill": terminals.kill,
            "terminal/release": terminals.release,
        }

    def serve(self, request: Request) -> None:
        if self._closed:
            raise _session_closed()
        if request.method in self._in_order:
            if self._waiting >= MAX_WAITING:
                raise internal("Too many requests in flight", "too_many_requests")
            self._waiting += 1
            request.on_cancel = partial(request.fail, _cancelled())
            self._start(request, self._answer_in_turn(request, self._in_order[request.method]))
        elif request.method in self._at_once:
            task = self._start(request, _answer(request, self._at_once[request.method]))
            if request.method == "terminal/wait_for_exit":
                request.on_cancel = task.cancel
        else:
            raise method_not_found(request.method)

    def terminal_output(self, terminal: str) -> bytes | None:
        return self._terminals.output_of(terminal)

    async def close(self) -> None:
        """End the commands, finish the write in progress, and drop queued requests."""
        self._closed = True
        await self._terminals.close()
        if not self._tasks:
            return
        _, late = await asyncio.wait(self._tasks, timeout=CLOSE_PATIENCE)
        for task in late:
            task.cancel()

    def _start(self, request: Request, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(partial(self._finished, request))
        return task

    def _finished(self, request: Request, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if task.cancelled():
            request.fail(_cancelled())
        elif (bug := task.exception()) is not None:
            log.error("request failed", extra={"method": request.method}, exc_info=bug)
            request.fail(internal("Internal error in the gateway; its log has the details"))

    async def _answer_in_turn(self, request: Request, answer: Answer) -> None:
        async with self._turn:
            self._waiting -= 1
            if request.answered:
                return  # cancelled while it waited
            request.on_cancel = None  # can no longer be cancelled
            if self._closed:
                request.fail(_session_closed())
                return
            await _answer(request, answer)

    async def _in_thread(self, work: Callable[[bytes], bytes], params: bytes) -> bytes:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work, params)


async def _answer(request: Request, answer: Answer) -> None:
    try:
        request.reply(await answer(request.params))
    except RpcError as error:
        request.fail(error)


def _cancelled() -> RpcError:
    return RpcError(CANCELLED, "Request cancelled")


def _session_closed() -> RpcError:
    return internal("The session was closed", "session_closed")
