"""A TCP proxy on loopback between two programs, whose connections a test can break."""

from __future__ import annotations

import asyncio


class TcpProxy:
    """Carries bytes to `port`; the address to dial is `self.port`."""

    def __init__(self, port: int) -> None:
        self.to = port
        """Where it leads; may be changed while it is cut."""
        self.port = 0
        self.carried = 0
        """Connections so far."""
        self._open: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._swallow = False
        self._server: asyncio.Server | None = None
        self._changed = asyncio.Event()

    async def listen(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    def stop_listening(self) -> None:
        """Refuse new connections and break the open ones."""
        if self._server is not None:
            self._server.close()
        self.cut()

    def cut(self) -> None:
        """Break every connection; new ones get through."""
        for writer in self._open:
            writer.transport.abort()
        self._open.clear()

    def drop_upstream(self) -> None:
        """What is sent to the server from now on never arrives, until the next connection."""
        self._swallow = True

    async def connections(self, count: int) -> None:
        """Wait until that many were made."""
        async with asyncio.timeout(20):
            while self.carried < count:
                self._changed.clear()
                await self._changed.wait()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, upwards = await asyncio.open_connection("127.0.0.1", self.to)
        except OSError:
            writer.transport.abort()
            return
        self._swallow = False
        self.carried += 1
        self._changed.set()
        self._open |= {writer, upwards}
        for source, sink in ((reader, upwards), (there, writer)):
            task = asyncio.create_task(self._carry(source, sink, upwards=sink is upwards))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _carry(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, *, upwards: bool
    ) -> None:
        try:
            while data := await source.read(65536):
                if not (upwards and self._swallow):
                    sink.write(data)
                    await sink.drain()
        except ConnectionError:
            pass  # cut
        finally:
            sink.close()
            self._open.discard(sink)

    async def close(self) -> None:
        self.stop_listening()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
