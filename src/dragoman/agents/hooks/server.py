"""The gateway's end of an agent's hooks: a private socket per agent process, where each connection is one tool call.

Fails closed: what is not understood, carries a wrong secret, or is not decided in time is denied, with the reason.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import secrets
import shutil
import socket
from contextlib import suppress
from pathlib import Path

from dragoman.agents.hooks.call import BadCall, Decision, Manner, read_answer, read_call
from dragoman.gateway.ports.agent import HookHandler
from dragoman.machine import short_path
from dragoman.rpc.request import Reply
from dragoman.wire import limits

log = logging.getLogger(__name__)

SOCKET = "hook.sock"
BACKLOG = 1024
READ_SECONDS = 30.0
"""Seconds that a connection has to tell its call."""


class HookServer:
    def __init__(self, folder: Path, handler: HookHandler, manner: Manner) -> None:
        """`folder` is private to this agent process; it is removed with the server."""
        self.folder = folder
        self._handler = handler
        self._manner = manner
        self._secret = secrets.token_urlsafe(24)
        self._server: asyncio.Server | None = None
        self._calls: set[asyncio.Task[None]] = set()

    @property
    def address(self) -> str:
        """For `VARIABLE`."""
        return f"{self.folder / SOCKET}#{self._secret}"

    async def start(self) -> None:
        """Listen; raises `OSError`."""
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with short_path(self.folder / SOCKET) as name:
                listening.bind(name)
            listening.setblocking(False)
            self._server = await asyncio.start_unix_server(
                self._accept, sock=listening, limit=READ_LIMIT, backlog=BACKLOG
            )
        except BaseException:
            listening.close()
            raise

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._calls:
            task.cancel()
        shutil.rmtree(self.folder, ignore_errors=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._calls.add(task)
        try:
            decision = await self._decide(reader)
            if decision is not None:
                writer.write(decision.encode())
        except OSError as error:
            log.info("a hook ended early: %s", error)
        except asyncio.CancelledError:
            pass  # the agent ends; a hook without an answer denies
        finally:
            self._calls.discard(task)
            writer.close()

    async def _decide(self, reader: asyncio.StreamReader) -> Decision | None:
        """The answer to one connection; None if it is gone."""
        if len(self._calls) > limits.HOOK_CALLS:
            return Decision.deny("The agent runs more hooks at once than Dragoman takes")
        try:
            async with asyncio.timeout(READ_SECONDS):
                raw = await self._read(reader)
            session_id, params = read_call(raw, self._manner.describe, says_ask=self._manner.says_ask)
        except BadCall as error:
            log.warning("a hook was called in a wrong way: %s", error)
            return Decision.deny(str(error))
        except (TimeoutError, asyncio.IncompleteReadError, ValueError):
            return Decision.deny("Dragoman's hook did not tell the call")
        return await self._ask(reader, session_id, params)

    async def _read(self, reader: asyncio.StreamReader) -> bytes:
        secret, _, length = (await reader.readline()).strip().partition(b" ")
        if not hmac.compare_digest(secret, self._secret.encode()):
            raise BadCall("The hook does not know the secret of this agent process")
        if not length.isdigit() or int(length) > limits.MAX_MESSAGE_BYTES:
            raise BadCall(f"The call is longer than {limits.MAX_MESSAGE_BYTES} bytes")
        return await reader.readexactly(int(length))

    async def _ask(self, reader: asyncio.StreamReader, session_id: str, params: bytes) -> Decision | None:
        answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()

        def answered(reply: Reply) -> None:
            if not answer.done():
                answer.set_result(reply)

        cancel = self._handler.hook_called(session_id, params, answered)
        gone = asyncio.ensure_future(reader.read(1))
        try:
            await asyncio.wait(
                (answer, gone), timeout=self._manner.patience, return_when=asyncio.FIRST_COMPLETED
            )
            if answer.done():
                return read_answer(answer.result(), says_ask=self._manner.says_ask)
            if gone.done():
                return None
            return Decision.deny(
                f"Nobody answered within {self._manner.patience:g} s, as long as the agent waits"
            )
        finally:
            gone.cancel()
            with suppress(asyncio.CancelledError, OSError):
                await gone
            if not answer.done():
                cancel()


READ_LIMIT = 64 * 1024
"""Bytes of the stream that are buffered; a longer call is read on as the loop turns."""
