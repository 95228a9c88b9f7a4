"""A web server on loopback that answers what a test says, and breaks off where it says."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Answer:
    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    announced: int | None = None
    """The Content-Length, if it is not that of the body: the connection breaks before."""
    hold: threading.Event | None = None
    """Set by the test: before that only the first half of the body is sent."""
    begun: threading.Event = field(default_factory=threading.Event)
    """Set when the first half was sent."""


class Site:
    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.answers: dict[str, Answer] = {}
        self.asked: list[tuple[str, dict[str, str]]] = []

    def put(self, path: str, body: bytes, **more: Any) -> str:
        """Serve `body` at `path`; returns the URL."""
        self.answers[path] = Answer(body, **more)
        return self.url + path

    def put_registry(self, *agents: object, **more: Any) -> str:
        document = {"version": "1.0.0", "agents": agents}
        return self.put("/registry.json", json.dumps(document).encode(), **more)


@contextmanager
def serving() -> Iterator[Site]:
    site: Site

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            site.asked.append((self.path, dict(self.headers)))
            answer = site.answers.get(self.path.partition("?")[0], Answer(b"none", 404))
            etag = answer.headers.get("ETag")
            if etag is not None and self.headers.get("If-None-Match") == etag:
                answer = Answer(status=304, headers={"ETag": etag})
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(answer.announced or len(answer.body)))
            self.end_headers()
            half = len(answer.body) // 2 if answer.hold is not None else 0
            self.wfile.write(answer.body[:half])
            self.wfile.flush()
            if answer.hold is not None:
                answer.begun.set()
                answer.hold.wait(60)
            self.wfile.write(answer.body[half:])

        def log_message(self, *_: Any) -> None:
            pass

        def handle(self) -> None:
            try:
                super().handle()
            except (BrokenPipeError, ConnectionResetError):
                pass  # the client gave up, as it should

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    site = Site(server.server_port)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
