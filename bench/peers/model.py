"""A model over HTTP, OpenAI-shaped: every prompt is answered with `TOKENS` pieces. Prints its port."""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def sse(value: object) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def chunk(delta: dict[str, str], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "bench"}
    return sse({**head, "choices": [choice]})


class Model(BaseHTTPRequestHandler):
    answer = b""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        self.wfile.write(self.answer)

    def log_message(self, *arguments: object) -> None:
        pass


if __name__ == "__main__":
    tokens = int(sys.argv[1])
    Model.answer = chunk({"role": "assistant", "content": ""})
    Model.answer += b"".join(chunk({"content": f"word{number} "}) for number in range(tokens))
    Model.answer += chunk({}, "stop") + b"data: [DONE]\n\n"
    with ThreadingHTTPServer(("127.0.0.1", 0), Model) as server:
        print(server.server_port, flush=True)
        server.serve_forever()
