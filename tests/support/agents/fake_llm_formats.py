"""Two more shapes of the scripted model: Google's and OpenAI's Responses."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

Json = dict[str, Any]
Said = tuple[str, Any]
"""A part of an answer: `text` or `thinking` with its pieces, `call` with id, name and arguments, `finish`."""

GOOGLE_REASONS = {"length": "MAX_TOKENS", "content_filter": "SAFETY"}
INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}


def google(said: Sequence[Said], tokens: tuple[int, int]) -> Iterator[bytes]:
    """Chunks of `streamGenerateContent?alt=sse`."""
    reason = "STOP"
    for kind, value in said:
        if kind == "finish":
            reason = GOOGLE_REASONS[value]
        elif kind == "call":
            call = {"id": value[0], "name": value[1], "args": json.loads(value[2])}
            yield _candidate([{"functionCall": call, "thoughtSignature": "c2ln"}])
        else:
            thought = {"thought": True} if kind == "thinking" else {}
            for piece in value:
                yield _candidate([{"text": piece, **thought}])
    prompt, completion = tokens
    usage = {
        "promptTokenCount": prompt,
        "candidatesTokenCount": completion,
        "totalTokenCount": prompt + completion,
    }
    yield _candidate([], finishReason=reason, usage=usage)


def _candidate(parts: list[Json], usage: Json | None = None, **more: Any) -> bytes:
    candidate = {"content": {"role": "model", "parts": parts}, "index": 0, **more}
    answer: Json = {"candidates": [candidate], "modelVersion": "fake", "responseId": "r"}
    if usage is not None:
        answer["usageMetadata"] = usage
    return _data(answer)


def responses(said: Sequence[Said], tokens: tuple[int, int]) -> Iterator[bytes]:
    """Events of OpenAI's `/responses`."""
    numbered = _Numbered()
    yield numbered.event("response.created", response=_response("in_progress", [], None))
    output: list[Json] = []
    reason = None
    for kind, value in said:
        if kind == "finish":
            reason = INCOMPLETE[value]
            continue
        item, events = _ITEMS[kind](len(output), value)
        output.append(item)
        for name, fields in events:
            yield numbered.event(name, output_index=len(output) - 1, **fields)
        yield numbered.event("response.output_item.done", output_index=len(output) - 1, item=item)
    status = "completed" if reason is None else "incomplete"
    yield numbered.event(f"response.{status}", response=_response(status, output, tokens, reason))


class _Numbered:
    def __init__(self) -> None:
        self._number = -1

    def event(self, kind: str, **fields: Any) -> bytes:
        self._number += 1
        value = {"type": kind, "sequence_number": self._number, **fields}
        return f"event: {kind}\n".encode() + _data(value)


Events = list[tuple[str, Json]]


def _message(index: int, pieces: list[str]) -> tuple[Json, Events]:
    empty: Json = {"type": "message", "id": f"m{index}", "role": "assistant", "content": []}
    at = {"item_id": empty["id"], "content_index": 0}
    part: Json = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
    events: Events = [
        ("response.output_item.added", {"item": {**empty, "status": "in_progress"}}),
        ("response.content_part.added", {**at, "part": part}),
        *(("response.output_text.delta", {**at, "delta": piece, "logprobs": []}) for piece in pieces),
        ("response.output_text.done", {**at, "text": "".join(pieces), "logprobs": []}),
    ]
    return {**empty, "status": "completed", "content": [{**part, "text": "".join(pieces)}]}, events


def _reasoning(index: int, pieces: list[str]) -> tuple[Json, Events]:
    empty: Json = {"type": "reasoning", "id": f"r{index}", "summary": []}
    at = {"item_id": empty["id"], "summary_index": 0}
    events: Events = [
        ("response.output_item.added", {"item": empty}),
        ("response.reasoning_summary_part.added", {**at, "part": {"type": "summary_text", "text": ""}}),
        *(("response.reasoning_summary_text.delta", {**at, "delta": piece}) for piece in pieces),
    ]
    return {**empty, "summary": [{"type": "summary_text", "text": "".join(pieces)}]}, events


def _function(index: int, value: tuple[str, str, str]) -> tuple[Json, Events]:
    call, name, arguments = value
    item: Json = {"type": "function_call", "id": f"f{index}", "call_id": call, "name": name}
    at = {"item_id": item["id"]}
    events: Events = [
        ("response.output_item.added", {"item": {**item, "arguments": "", "status": "in_progress"}}),
        ("response.function_call_arguments.delta", {**at, "delta": arguments}),
        ("response.function_call_arguments.done", {**at, "name": name, "arguments": arguments}),
    ]
    return {**item, "arguments": arguments, "status": "completed"}, events


_ITEMS: dict[str, Any] = {"text": _message, "thinking": _reasoning, "call": _function}


def _response(
    status: str, output: list[Json], tokens: tuple[int, int] | None, reason: str | None = None
) -> Json:
    usage = None
    if tokens is not None:
        usage = {
            "input_tokens": tokens[0],
            "output_tokens": tokens[1],
            "total_tokens": sum(tokens),
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        }
    return {
        "id": "resp",
        "object": "response",
        "created_at": 1,
        "model": "fake",
        "status": status,
        "output": output,
        "usage": usage,
        "incomplete_details": None if reason is None else {"reason": reason},
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }


def _data(value: Json) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"
