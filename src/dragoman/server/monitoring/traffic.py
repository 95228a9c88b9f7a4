"""Byte counts by transport, and the system's figures for this process.

Connections count their own bytes, once per read and per write; the sums are made when metrics are requested.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable, MutableMapping
from pathlib import Path
from typing import Any

from dragoman.rpc.websocket import WebSocket
from dragoman.server.asgi import Receive, Send
from dragoman.server.monitoring.exposition import Sample

_STARTED = time.time()
_PROC = Path("/proc/self")


class Traffic:
    def __init__(self) -> None:
        self.http_received = 0
        self.http_sent = 0
        self._open: set[WebSocket] = set()
        self._received = 0
        self._sent = 0

    def opened(self, connection: WebSocket) -> None:
        self._open.add(connection)

    def closed(self, connection: WebSocket) -> None:
        self._open.discard(connection)
        self._received += connection.received
        self._sent += connection.sent

    def count_bodies(
        self, receive: Receive, send: Send, begun: Callable[[int], None]
    ) -> tuple[Receive, Send]:
        """Wrap `receive` and `send` to count the bodies; `begun` is called with the response status."""

        async def receiving() -> MutableMapping[str, Any]:
            event = await receive()
            self.http_received += len(event.get("body") or event.get("text") or b"")
            return event

        async def sending(event: MutableMapping[str, Any]) -> None:
            if event["type"].endswith("response.start"):
                begun(event["status"])
            self.http_sent += len(event.get("body") or event.get("text") or b"")
            await send(event)

        return receiving, sending

    def samples(self) -> dict[str, list[Sample]]:
        received = self._received + sum(socket.received for socket in self._open)
        sent = self._sent + sum(socket.sent for socket in self._open)
        http, websocket = {"transport": "http"}, {"transport": "websocket"}
        return {
            "dragoman_received_bytes_total": [(http, self.http_received), (websocket, received)],
            "dragoman_sent_bytes_total": [(http, self.http_sent), (websocket, sent)],
        }


def process_samples() -> dict[str, list[Sample]]:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    samples: dict[str, list[Sample]] = {
        "process_start_time_seconds": [({}, _STARTED)],
        "process_cpu_seconds_total": [({}, usage.ru_utime + usage.ru_stime)],
        "process_resident_memory_bytes": [],
        "process_open_fds": [],
    }
    if (_PROC / "statm").exists():
        pages = int((_PROC / "statm").read_text().split()[1])
        samples["process_resident_memory_bytes"] = [({}, pages * os.sysconf("SC_PAGE_SIZE"))]
        samples["process_open_fds"] = [({}, sum(1 for _ in (_PROC / "fd").iterdir()))]
    return samples
