"""The scripted agent's end of the pipes: lines in, lines out, its own request ids."""

from __future__ import annotations

import json
import sys
import threading
from contextlib import contextmanager

TYPE_CHECKING = False  # of `typing`, which takes as long to load as all the rest
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    Message = dict[str, Any]

FIRST_ID = {"zero": 0, "string": 0, "big": 2**60}


class RpcError(Exception):
    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.error: Message = {"code": code, "message": message}
        if data is not None:
            self.error["data"] = data


# Not dataclasses: these agents start thousands of times, and loading what makes them would be a fifth of it.


class Reply:
    def __init__(self, result: Any = None, *, withheld: bool = False) -> None:
        self.result = result
        self.withheld = withheld
        """No answer at all, for what must stay open for ever."""


class Pending:
    def __init__(self) -> None:
        self.answered = threading.Event()
        self.answer: Message | None = None


class Connection:
    """Writes whole lines under one lock and correlates the answers to what this agent asked."""

    def __init__(self, journal: str | None, id_style: str) -> None:
        self._journal = open(journal, "ab", buffering=0) if journal else None  # noqa: SIM115
        self._lock = threading.Lock()
        self._pending: dict[Any, Pending] = {}
        self._id_style = id_style
        self._next_id = FIRST_ID[id_style]
        self._afterwards = threading.local()

    def messages(self) -> Iterator[Message]:
        for line in sys.stdin.buffer:
            if self._journal:
                self._journal.write(line)
            if line.strip():
                yield json.loads(line)

    # Sending

    def send_bytes(self, data: bytes) -> None:
        with self._lock:
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()

    def send(self, message: Message) -> None:
        line = json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":"), ensure_ascii=False)
        self.send_bytes(line.encode() + b"\n")

    def notify(self, method: str, params: Any) -> None:
        self.send({"method": method, "params": params})

    def update(self, session: str, update: Message) -> None:
        self.notify("session/update", {"sessionId": session, "update": update})

    def say(self, session: str, text: str, kind: str = "agent_message_chunk") -> None:
        self.update(session, {"sessionUpdate": kind, "content": {"type": "text", "text": text}})

    # Asking

    def ask(self, method: str, params: Any) -> Any:
        """Send a request without waiting; returns its id for `wait_for`."""
        with self._lock:
            number = self._next_id
            self._next_id += 1
        request_id = f"ask-{number}" if self._id_style == "string" else number
        self._pending[request_id] = Pending()
        self.send({"id": request_id, "method": method, "params": params})
        return request_id

    def wait_for(self, request_id: Any) -> Message:
        """The answer as `{"result": …}` or `{"error": …}`."""
        pending = self._pending[request_id]
        pending.answered.wait()
        assert pending.answer is not None
        return {key: pending.answer[key] for key in ("result", "error") if key in pending.answer}

    def request(self, method: str, params: Any) -> Message:
        return self.wait_for(self.ask(method, params))

    def settle(self, message: Message) -> None:
        pending = self._pending.get(message.get("id"))
        if pending and not pending.answered.is_set():
            pending.answer = message
            pending.answered.set()

    # Answering

    def after_response(self, action: Callable[[], None]) -> None:
        """Run `action` once the response of the request that this thread serves is written."""
        self._afterwards.actions.append(action)

    @contextmanager
    def answering(self, request_id: Any) -> Iterator[Reply]:
        self._afterwards.actions = []
        reply = Reply()
        try:
            yield reply
        except RpcError as failure:
            self.send({"id": request_id, "error": failure.error})
        else:
            if not reply.withheld:
                self.send({"id": request_id, "result": reply.result})
        for action in self._afterwards.actions:
            action()
