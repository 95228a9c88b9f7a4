"""An ACP agent that floods updates as fast as a pipe allows; run as a script, on the standard library alone.

What a prompt's text asks for:

    echo               one small update, then the response
    prepare N SIZE     make N numbered updates of SIZE bytes ready, then the response
    flood N SIZE       send them in 64 KiB writes, then the response (made on the spot if not prepared)
    stream N RATE      send N updates, RATE a second, each with the time it left (`@NANOSECONDS@`), then the response

Started with the argument `paths` its updates are tool calls full of paths instead of message chunks.

Each update's text starts with `#PID.SESSION:NUMBER#`, so that the client can tell afterwards what was lost,
doubled, reordered or sent to the wrong session, also when many of these agents run at once.
Between two writes of a flood the agent looks at its stdin, so another session's echo is answered meanwhile.
"""

import heapq
import json
import os
import random
import select
import sys
import time

BLOCK = 65536
HEAD = b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"%b","update":'
UPDATE = b'{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"#%b:%08d#%b"}}'
TOOL_CALL = (
    b'{"sessionUpdate":"tool_call_update","toolCallId":"call-1","title":"#%b:%08d#%b","kind":"edit","locations":'
    b'[{"path":"/home/agent/workspace/src/one.py","line":12},{"path":"/home/agent/workspace/src/two.py"}],"content":'
    b'[{"type":"diff","path":"/home/agent/workspace/src/one.py","oldText":"a = 1","newText":"a = 2"}]}'
)
if sys.argv[1:] == ["paths"]:
    UPDATE = TOOL_CALL
TAIL = b"}}\n"


def write_all(data: bytes) -> None:
    """Write every byte to stdout, which blocks while the reader is busy."""
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


def make_blocks(session: str, count: int, size: int) -> list[bytes]:
    """Number `count` updates whose `update` object has `size` bytes; join them to writes of about 64 KiB."""
    tag = session.removeprefix("bench-").encode()
    padding = b"x" * max(0, size - len(UPDATE % (tag, 0, b"")))
    start, rest = UPDATE.split(b"%b:%08d")
    before = HEAD % session.encode() + start + tag + b":"
    after = rest % padding + TAIL
    per_block = max(1, BLOCK // (len(before) + 8 + len(after)))
    return [
        b"".join(
            [b"%b%08d%b" % (before, number, after) for number in range(start, min(start + per_block, count))]
        )
        for start in range(0, count, per_block)
    ]


class Stream:
    """A session that speaks at a steady pace."""

    def __init__(self, request_id: object, session: str, count: int, pause: float) -> None:
        self.request_id = request_id
        self.count = count
        self.number = 0
        # Agents that know nothing of each other do not speak in step, even if they were asked at one time.
        self.due = time.monotonic() + random.random() * pause
        self._pause = pause
        self._tag = session.removeprefix("bench-").encode()
        self._head = HEAD % session.encode()

    def __lt__(self, other: "Stream") -> bool:
        return self.due < other.due

    def update(self) -> bytes:
        stamp = b"@%d@" % time.monotonic_ns()
        line = self._head + UPDATE % (self._tag, self.number, stamp) + TAIL
        self.number += 1
        self.due += self._pause
        return line


class Agent:
    """The state of all sessions and the loop that serves them."""

    def __init__(self) -> None:
        self.sessions = 0
        self.prepared: dict[tuple[str, int, int], list[bytes]] = {}
        self.floods: list[tuple[object, list[bytes]]] = []
        self.streams: list[Stream] = []
        self.rest = b""

    def respond(self, request_id: object, result: object) -> None:
        message = {"jsonrpc": "2.0", "id": request_id, "result": result}
        write_all(json.dumps(message, separators=(",", ":")).encode() + b"\n")

    def handle(self, message: dict[str, object]) -> None:
        method, request_id = message.get("method"), message.get("id")
        params = message.get("params")
        if method == "initialize":
            self.respond(request_id, {"protocolVersion": 1, "agentCapabilities": {"loadSession": False}})
        elif method == "session/new":
            self.sessions += 1
            self.respond(request_id, {"sessionId": f"bench-{os.getpid()}.{self.sessions}"})
        elif method == "session/prompt" and isinstance(params, dict):
            self.prompt(request_id, params["sessionId"], params["prompt"][0]["text"].split())
        elif "id" in message and method is not None:
            error = {"code": -32601, "message": f"the bench agent does not know {method}"}
            write_all(json.dumps({"jsonrpc": "2.0", "id": request_id, "error": error}).encode() + b"\n")

    def prompt(self, request_id: object, session: str, words: list[str]) -> None:
        if words[0] == "echo":
            write_all(make_blocks(session, 1, 0)[0])
            self.respond(request_id, {"stopReason": "end_turn"})
            return
        if words[0] == "stream":
            heapq.heappush(self.streams, Stream(request_id, session, int(words[1]), 1 / int(words[2])))
            return
        key = (session, int(words[1]), int(words[2]))
        blocks = self.prepared.pop(key, None) or make_blocks(*key)
        if words[0] == "prepare":
            self.prepared = {key: blocks}
            self.respond(request_id, {"stopReason": "end_turn"})
        else:
            self.floods.append((request_id, blocks[::-1]))

    def read(self) -> bool:
        """Handle what stdin offers; false at its end."""
        data = os.read(0, BLOCK)
        *lines, self.rest = (self.rest + data).split(b"\n")
        for line in lines:
            self.handle(json.loads(line))
        return bool(data)

    def may_read(self) -> bool:
        """Wait for stdin, or for what is to be sent next."""
        if self.floods:
            wait: float | None = 0.0
        elif self.streams:
            wait = max(0.0, self.streams[0].due - time.monotonic())
        else:
            wait = None
        return bool(select.select([0], [], [], wait)[0])

    def tick(self, stream: "Stream") -> None:
        write_all(stream.update())
        if stream.number == stream.count:
            self.respond(stream.request_id, {"stopReason": "end_turn"})
        else:
            heapq.heappush(self.streams, stream)

    def serve(self) -> None:
        while True:
            if self.may_read() and not self.read():
                return
            while self.streams and self.streams[0].due <= time.monotonic():
                self.tick(heapq.heappop(self.streams))
            for flood in self.floods[:]:
                request_id, blocks = flood
                if blocks:
                    write_all(blocks.pop())
                else:
                    self.floods.remove(flood)
                    self.respond(request_id, {"stopReason": "end_turn"})


if __name__ == "__main__":
    try:
        Agent().serve()
    except BrokenPipeError:
        sys.exit(0)
