"""A model that says what it is told, over real HTTP on loopback: OpenAI-, Anthropic- and Google-shaped.

Each request takes the next entry of the script: `text(...)`, `call(...)`, `status(429)`, or a list of these to
be sent in one answer. It keeps every request, so that tests see what the model saw.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from support.agents import fake_llm_formats

Json = dict[str, Any]


@dataclass(frozen=True)
class Step:
    """One part of an answer."""

    kind: str
    value: Any = None
    fields: Json = field(default_factory=dict)


def text(value: str, pieces: int = 3) -> Step:
    return Step("text", value, {"pieces": pieces})


def thinking(value: str) -> Step:
    return Step("thinking", value)


def call(name: str, arguments: Any, id: str | None = None) -> Step:
    return Step("call", name, {"arguments": arguments, "id": id})


def finish(reason: str) -> Step:
    """Ends the answer with this reason, in OpenAI's words: `length`, `content_filter`."""
    return Step("finish", reason)


def status(code: int, message: str = "no", reason: str | None = None, **headers: str) -> Step:
    """An HTTP error; `reason` is OpenAI's code for it."""
    return Step("status", code, {"message": message, "reason": reason, "headers": headers})


def cut() -> Step:
    """The connection breaks here."""
    return Step("cut")


def hang() -> Step:
    """Nothing more comes until the client goes."""
    return Step("hang")


Script = Sequence[Step | Sequence[Step]]

ANTHROPIC_REASONS = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "content_filter": "refusal",
}


class FakeLlm:
    """The server; `url` is for OpenAI's shape, `root` for Anthropic's."""

    def __init__(self) -> None:
        self.script: list[Step | Sequence[Step]] = []
        self.requests: list[Json] = []
        self.left = asyncio.Event()
        self.reached = asyncio.Event()
        """Set when a `hang` is reached."""
        self.root = ""
        self.tokens = (100, 10)
        self._ids = 0

    @property
    def url(self) -> str:
        return f"{self.root}/v1"

    def tell(self, *script: Step | Sequence[Step]) -> None:
        self.script += script

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while request := await _read_request(reader):
                path, body = request
                if path.endswith("/models"):
                    await _json(writer, 200, {"data": [{"id": "first-model"}]})
                    continue
                self.requests.append(body)
                await self._answer(path, body, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self.left.set()
            writer.close()

    async def _answer(self, path: str, body: Json, writer: asyncio.StreamWriter) -> None:
        entry = self.script.pop(0) if self.script else text("(the script is over)")
        steps = [entry] if isinstance(entry, Step) else list(entry)
        if steps[0].kind == "status":
            fields = steps[0].fields
            error = {"error": {"message": fields["message"], "type": "error", "code": fields["reason"]}}
            await _json(writer, steps[0].value, error, steps[0].fields["headers"])
            return
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
        async for event in self._shape(path)(steps):
            writer.write(event)
            await writer.drain()
        writer.close()

    def _shape(self, path: str) -> Callable[[Sequence[Step]], AsyncIterator[bytes]]:
        if path.endswith("/messages"):
            return self._anthropic
        if path.endswith(":streamGenerateContent"):
            return lambda steps: self._whole(steps, fake_llm_formats.google)
        if path.endswith("/responses"):
            return lambda steps: self._whole(steps, fake_llm_formats.responses)
        return self._openai

    async def _whole(
        self,
        steps: Sequence[Step],
        shape: Callable[[list[fake_llm_formats.Said], tuple[int, int]], Iterator[bytes]],
    ) -> AsyncIterator[bytes]:
        """Formats that are made from all steps at once; a step that hangs or breaks off does so at the end."""
        said: list[fake_llm_formats.Said] = []
        for step in steps:
            if step.kind == "call":
                said.append(("call", (self._id(step), step.value, _arguments(step))))
            elif step.kind == "text":
                said.append(("text", _pieces(step)))
            elif step.kind == "thinking":
                said.append(("thinking", [step.value]))
            elif step.kind == "finish":
                said.append(("finish", step.value))
        ending = next((step for step in steps if step.kind in ("hang", "cut")), None)
        events = list(shape(said, self.tokens))
        for event in events if ending is None else events[:-1]:
            yield event
        if ending is not None:
            await self._pause(ending)

    async def _pause(self, step: Step) -> None:
        if step.kind == "hang":
            self.reached.set()
            await asyncio.Event().wait()
        raise ConnectionResetError

    async def _openai(self, steps: Sequence[Step]) -> AsyncIterator[bytes]:
        reason = "stop"
        index = 0

        def chunk(delta: Json, finish: str | None = None, **more: Any) -> bytes:
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            return _sse(
                {
                    "id": "c",
                    "object": "chat.completion.chunk",
                    "created": 1,
                    "model": "fake",
                    "choices": [choice],
                    **more,
                }
            )

        yield chunk({"role": "assistant", "content": ""})
        for step in steps:
            if step.kind == "text":
                for piece in _pieces(step):
                    yield chunk({"content": piece})
            elif step.kind == "thinking":
                yield chunk({"reasoning_content": step.value})
            elif step.kind == "call":
                reason = "tool_calls"
                function = {"name": step.value, "arguments": _arguments(step)}
                yield chunk(
                    {
                        "tool_calls": [
                            {"index": index, "id": self._id(step), "type": "function", "function": function}
                        ]
                    }
                )
                index += 1
            elif step.kind == "finish":
                reason = step.value
            else:
                await self._pause(step)
        yield chunk({}, reason)
        prompt, completion = self.tokens
        usage = {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
        }
        yield _sse(
            {
                "id": "c",
                "object": "chat.completion.chunk",
                "created": 1,
                "model": "fake",
                "choices": [],
                "usage": usage,
            }
        )
        yield b"data: [DONE]\n\n"

    async def _anthropic(self, steps: Sequence[Step]) -> AsyncIterator[bytes]:
        reason, index = "end_turn", 0
        prompt, completion = self.tokens
        message: dict[str, object] = {
            "id": "m",
            "type": "message",
            "role": "assistant",
            "model": "fake",
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
        }
        yield _event(
            "message_start", message={**message, "usage": {"input_tokens": prompt, "output_tokens": 1}}
        )
        for step in steps:
            if step.kind in ("finish",):
                reason = ANTHROPIC_REASONS[step.value]
                continue
            if step.kind in ("hang", "cut"):
                await self._pause(step)
            block, deltas = self._block(step)
            reason = "tool_use" if step.kind == "call" else reason
            yield _event("content_block_start", index=index, content_block=block)
            for delta in deltas:
                yield _event("content_block_delta", index=index, delta=delta)
            yield _event("content_block_stop", index=index)
            index += 1
        yield _event(
            "message_delta",
            delta={"stop_reason": reason, "stop_sequence": None},
            usage={"output_tokens": completion},
        )
        yield _event("message_stop")

    def _block(self, step: Step) -> tuple[Json, list[Json]]:
        if step.kind == "text":
            return {"type": "text", "text": ""}, [
                {"type": "text_delta", "text": piece} for piece in _pieces(step)
            ]
        if step.kind == "thinking":
            deltas = [
                {"type": "thinking_delta", "thinking": step.value},
                {"type": "signature_delta", "signature": "s"},
            ]
            return {"type": "thinking", "thinking": "", "signature": ""}, deltas
        block = {"type": "tool_use", "id": self._id(step), "name": step.value, "input": {}}
        return block, [{"type": "input_json_delta", "partial_json": _arguments(step)}]

    def _id(self, step: Step) -> str:
        self._ids += 1
        return step.fields["id"] or f"id_{self._ids}"

    def seen(self, request: int = -1) -> list[str]:
        """The conversation as a request showed it, entry by entry, in whatever shape."""
        body = self.requests[request]
        return [json.dumps(each) for each in body.get("messages") or body.get("contents") or body["input"]]

    def tool_results(self, request: int = -1) -> list[str]:
        """What the model was told of its calls, in OpenAI's shape."""
        return [str(m["content"]) for m in self.requests[request]["messages"] if m["role"] == "tool"]


@asynccontextmanager
async def fake_llm() -> AsyncIterator[FakeLlm]:
    model = FakeLlm()
    tasks: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        await model.serve(reader, writer)

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    model.root = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield model
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _read_request(reader: asyncio.StreamReader) -> tuple[str, Json] | None:
    line = await reader.readline()
    if not line:
        return None
    path = line.split()[1].decode().partition("?")[0]
    length = 0
    while (header := await reader.readline()) not in (b"\r\n", b""):
        name, _, value = header.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    body = await reader.readexactly(length)
    return path, json.loads(body) if body else {}


async def _json(writer: asyncio.StreamWriter, code: int, value: Json, headers: Json | None = None) -> None:
    body = json.dumps(value).encode()
    lines = [f"HTTP/1.1 {code} Status", "Content-Type: application/json", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in (headers or {}).items()]
    writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
    await writer.drain()


def _pieces(step: Step) -> list[str]:
    count = max(1, min(step.fields["pieces"], len(step.value)))
    size = -(-len(step.value) // count)
    return [step.value[at : at + size] for at in range(0, len(step.value), size)]


def _arguments(step: Step) -> str:
    arguments = step.fields["arguments"]
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def _sse(value: Json) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def _event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()
