"""A WebSocket inside HTTP/2 (RFC 8441), as a client that shares no code with the server."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, RemoteSettingsChanged, ResponseReceived, StreamEnded, StreamReset

from support.rpc_peer import PATIENCE
from support.serve_process import Refused, ServeProcess, Socket, WebSocketFraming


class Tunnel:
    """One extended CONNECT: looks like the writer of a connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.received = asyncio.StreamReader()
        self.status: asyncio.Future[tuple[int, dict[str, str]]] = asyncio.get_running_loop().create_future()
        self.settings: dict[int, int] = {}
        self._settled = asyncio.Event()
        self._reader, self._writer = reader, writer
        self._http = H2Connection(H2Configuration(client_side=True, header_encoding="latin-1"))
        self._stream = 0
        self._http.initiate_connection()
        self._flush()
        self._task = asyncio.create_task(self._pump())

    async def connect(self, headers: list[tuple[str, str]]) -> tuple[int, dict[str, str]]:
        async with asyncio.timeout(PATIENCE):
            await self._settled.wait()
            self._stream = self._http.get_next_available_stream_id()
            self._http.send_headers(self._stream, headers)
            self._flush()
            return await self.status

    def write(self, data: bytes) -> None:
        self._http.send_data(self._stream, data)
        self._flush()

    async def drain(self) -> None:
        await self._writer.drain()

    def can_write_eof(self) -> bool:
        return False

    def close(self) -> None:
        self._task.cancel()
        self._writer.close()

    def _flush(self) -> None:
        self._writer.write(self._http.data_to_send())

    async def _pump(self) -> None:
        while data := await self._reader.read(65536):
            for event in self._http.receive_data(data):
                self._take(event)
            self._flush()
        self.received.feed_eof()

    def _take(self, event: object) -> None:
        if isinstance(event, RemoteSettingsChanged):
            self.settings.update({int(key): each.new_value for key, each in event.changed_settings.items()})
            self._settled.set()
        elif isinstance(event, ResponseReceived):
            pairs = cast("list[tuple[str, str]]", event.headers)
            headers = dict(pairs)
            self.status.set_result((int(headers.pop(":status")), headers))
        elif isinstance(event, DataReceived):
            self.received.feed_data(event.data)
            self._http.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, StreamEnded | StreamReset):
            self.received.feed_eof()


ENABLE_CONNECT_PROTOCOL = 8


async def open_socket(serving: ServeProcess, path: str = "/acp", **headers: str) -> Socket:
    """Raises `Refused`, as `Serving.socket` does."""
    tunnel = Tunnel(*await serving.open())
    given = {"authorization": serving.bearer["Authorization"], **headers}
    status, answered = await tunnel.connect(
        [
            (":method", "CONNECT"),
            (":protocol", "websocket"),
            (":scheme", "http"),
            (":path", path),
            (":authority", given.pop("host", f"127.0.0.1:{serving.port}")),
            ("sec-websocket-version", "13"),
            ("sec-websocket-extensions", "permessage-deflate"),
            *given.items(),
        ]
    )
    assert tunnel.settings[ENABLE_CONNECT_PROTOCOL] == 1
    if status != 200:
        tunnel.close()
        raise Refused(status, answered)
    socket = Socket(tunnel.received, cast("Any", tunnel), WebSocketFraming())
    socket.handshake = answered
    serving.sockets.append(socket)
    return socket
