"""The four APIs that the agents speak to their models, as far as the agents use them.

Each reads a request into `Asked` and streams a `Reply` as server-sent events. Two are also asked without a stream.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from real.model_script import Asked, Call, Json, Reply, Said, user_text

Event = tuple[str | None, Json | str]
"""Name and data."""

_numbers = itertools.count(1)


@dataclass(frozen=True)
class Api:
    path: re.Pattern[str]
    read: Callable[[Json, str], Asked]
    stream: Callable[[Reply, str], AsyncIterator[Event]]
    whole: Callable[[Reply, str], Awaitable[Json]] | None
    failure: Callable[[int], Json]


def _id(prefix: str) -> str:
    return f"{prefix}_{next(_numbers):06d}"


def _texts(content: Any) -> list[str]:
    """The text parts of a message's content in any of the shapes."""
    if isinstance(content, str):
        return [content]
    return [str(part["text"]) for part in content or () if isinstance(part, dict) and part.get("text")]


class _Conversation:
    """Follows messages in their order: a user's words start a turn, results belong to it."""

    def __init__(self) -> None:
        self.text = ""
        self.results: list[str] = []

    def user(self, parts: list[str]) -> None:
        if text := user_text(parts):
            self.text, self.results = text, []

    def result(self, content: Any) -> None:
        self.results.append(" ".join(_texts(content)))


# Anthropic Messages


def _read_anthropic(body: Json, path: str) -> Asked:
    talk = _Conversation()
    for message in body["messages"]:
        if message["role"] != "user":
            continue
        content = message["content"]
        for block in content if isinstance(content, list) else ():
            if block["type"] == "tool_result":
                talk.result(block.get("content"))
        talk.user(_texts(content))
    tools = {tool["name"]: tool.get("input_schema") or {} for tool in body.get("tools", ())}
    wanted = (body.get("output_config") or {}).get("format") or body.get("output_format") or {}
    streams = bool(body.get("stream"))
    return Asked(talk.text, talk.results, tools, body["model"], streams, wanted.get("schema"))


_ANTHROPIC_USAGE = {"input_tokens": 100, "output_tokens": 20}


def _anthropic_message(model: str, content: list[Json], stop: str | None) -> Json:
    message = {"id": _id("msg"), "type": "message", "role": "assistant", "model": model, "content": content}
    return {**message, "stop_reason": stop, "stop_sequence": None, "usage": _ANTHROPIC_USAGE}


async def _stream_anthropic(reply: Reply, model: str) -> AsyncIterator[Event]:
    def event(kind: str, **fields: Any) -> Event:
        return kind, {"type": kind, **fields}

    yield event("message_start", message=_anthropic_message(model, [], None))
    stop = "end_turn"
    for index, step in enumerate(reply):
        if isinstance(step, Call):
            stop = "tool_use"
            block = {"type": "tool_use", "id": _id("toolu"), "name": step.name, "input": {}}
            yield event("content_block_start", index=index, content_block=block)
            delta = {"type": "input_json_delta", "partial_json": json.dumps(step.arguments)}
            yield event("content_block_delta", index=index, delta=delta)
        else:
            kind = "text" if step.kind == "text" else "thinking"
            start = {"type": kind, kind: ""} | ({"signature": ""} if kind == "thinking" else {})
            yield event("content_block_start", index=index, content_block=start)
            async for chunk in step.chunks:
                delta = {"type": f"{kind}_delta", kind: chunk}
                yield event("content_block_delta", index=index, delta=delta)
        yield event("content_block_stop", index=index)
    ended = {"stop_reason": stop, "stop_sequence": None}
    yield event("message_delta", delta=ended, usage=_ANTHROPIC_USAGE)
    yield event("message_stop")


async def _whole_anthropic(reply: Reply, model: str) -> Json:
    texts = [await _joined(step) for step in reply if isinstance(step, Said) and step.kind == "text"]
    return _anthropic_message(model, [{"type": "text", "text": text} for text in texts], "end_turn")


def _anthropic_failure(status: int) -> Json:
    kinds = {400: "invalid_request_error", 401: "authentication_error", 429: "rate_limit_error"}
    error = {"type": kinds.get(status, "api_error"), "message": f"scripted failure {status}"}
    return {"type": "error", "error": error}


# OpenAI Responses


def _read_responses(body: Json, path: str) -> Asked:
    talk = _Conversation()
    for item in body["input"]:
        if item.get("type", "message") == "message" and item.get("role") == "user":
            talk.user(_texts(item["content"]))
        elif str(item.get("type")).endswith("_call_output"):
            talk.result(item["output"])
    tools = {
        tool["name"]: None if tool["type"] == "custom" else tool.get("parameters") or {}
        for tool in body.get("tools") or ()
        if tool.get("type") in ("function", "custom")
    }
    wanted = (body.get("text") or {}).get("format") or {}
    return Asked(
        talk.text, talk.results, tools, body["model"], bool(body.get("stream")), wanted.get("schema")
    )


async def _stream_responses(reply: Reply, model: str) -> AsyncIterator[Event]:
    numbers = itertools.count()

    def event(kind: str, **fields: Any) -> Event:
        return kind, {"type": kind, "sequence_number": next(numbers), **fields}

    response: Json = {"id": _id("resp"), "object": "response", "created_at": 1, "model": model, "output": []}
    yield event("response.created", response={**response, "status": "in_progress"})
    done: list[Json] = []
    for index, step in enumerate(reply):
        item, field, delta = _responses_item(step)
        start = {**item, "status": "in_progress"} | {field: "" if isinstance(step, Call) else []}
        yield event("response.output_item.added", output_index=index, item=start)
        if isinstance(step, Said):
            chunks = []
            async for chunk in step.chunks:
                chunks.append(chunk)
                place = {"content_index": 0, "summary_index": 0}
                yield event(delta, item_id=item["id"], output_index=index, delta=chunk, **place)
            kind = "output_text" if step.kind == "text" else "summary_text"
            item[field] = [{"type": kind, "text": "".join(chunks), "annotations": []}]
        yield event("response.output_item.done", output_index=index, item=item)
        done.append(item)
    usage = {"input_tokens": 100, "output_tokens": 20, "total_tokens": 120}
    yield event(
        "response.completed", response={**response, "status": "completed", "output": done, "usage": usage}
    )


def _responses_item(step: Said | Call) -> tuple[Json, str, str]:
    """The item, the field that streams, and the event that streams it."""
    if isinstance(step, Said):
        if step.kind == "thought":
            item = {"id": _id("rs"), "type": "reasoning", "encrypted_content": "eA=="}
            return item, "summary", "response.reasoning_summary_text.delta"
        item = {"id": _id("msg"), "type": "message", "role": "assistant", "status": "completed"}
        return item, "content", "response.output_text.delta"
    call = {"id": _id("fc"), "call_id": _id("call"), "name": step.name, "status": "completed"}
    if isinstance(step.arguments, str):
        return {**call, "type": "custom_tool_call", "input": step.arguments}, "input", ""
    return {**call, "type": "function_call", "arguments": json.dumps(step.arguments)}, "arguments", ""


# OpenAI Chat Completions


def _read_chat(body: Json, path: str) -> Asked:
    talk = _Conversation()
    for message in body["messages"]:
        if message["role"] == "user":
            talk.user(_texts(message["content"]))
        elif message["role"] == "tool":
            talk.result(message["content"])
    functions = (tool["function"] for tool in body.get("tools") or ())
    tools = {function["name"]: function.get("parameters") or {} for function in functions}
    wanted = (body.get("response_format") or {}).get("json_schema") or {}
    return Asked(
        talk.text, talk.results, tools, body["model"], bool(body.get("stream")), wanted.get("schema")
    )


async def _stream_chat(reply: Reply, model: str) -> AsyncIterator[Event]:
    base = {"id": _id("chatcmpl"), "object": "chat.completion.chunk", "created": 1, "model": model}

    def event(delta: Json, finish: str | None = None) -> Event:
        return None, {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    yield event({"role": "assistant", "content": ""})
    finish = "stop"
    for step in reply:
        if isinstance(step, Call):
            finish = "tool_calls"
            function = {"name": step.name, "arguments": json.dumps(step.arguments)}
            yield event(
                {"tool_calls": [{"index": 0, "id": _id("call"), "type": "function", "function": function}]}
            )
        else:
            field = "content" if step.kind == "text" else "reasoning_content"
            async for chunk in step.chunks:
                yield event({field: chunk})
    yield event({}, finish)
    yield (
        None,
        {
            **base,
            "choices": [],
            "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
        },
    )
    yield None, "[DONE]"


async def _whole_chat(reply: Reply, model: str) -> Json:
    texts = [await _joined(step) for step in reply if isinstance(step, Said) and step.kind == "text"]
    message = {"role": "assistant", "content": "".join(texts)}
    choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
    return {
        "id": _id("chatcmpl"),
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": choices,
    }


def _openai_failure(status: int) -> Json:
    return {"error": {"message": f"scripted failure {status}", "type": "scripted", "code": str(status)}}


# Google Gemini


def _read_gemini(body: Json, path: str) -> Asked:
    talk = _Conversation()
    for message in body["contents"]:
        if message.get("role", "user") != "user":
            continue
        for part in message["parts"]:
            if answer := part.get("functionResponse"):
                talk.result(json.dumps(answer["response"]))
        if not any("functionResponse" in part for part in message["parts"]):
            talk.user(_texts(message["parts"]))
    tools = {
        function["name"]: function.get("parametersJsonSchema") or function.get("parameters") or {}
        for tool in body.get("tools") or ()
        for function in tool.get("functionDeclarations") or ()
    }
    config = body.get("generationConfig") or {}
    schema = config.get("responseJsonSchema") or config.get("responseSchema")
    model, _, verb = path.rpartition("/")[2].partition(":")
    return Asked(talk.text, talk.results, tools, model, verb.startswith("stream"), schema)


def _gemini_answer(model: str, parts: list[Json], finish: Json | None = None) -> Json:
    candidate = {"content": {"role": "model", "parts": parts}, "index": 0, **(finish or {})}
    usage = {"promptTokenCount": 100, "candidatesTokenCount": 20, "totalTokenCount": 120}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": model}


async def _stream_gemini(reply: Reply, model: str) -> AsyncIterator[Event]:
    for step in reply:
        if isinstance(step, Call):
            call = {"name": step.name, "args": step.arguments, "id": _id("call")}
            yield None, _gemini_answer(model, [{"functionCall": call}])
        else:
            thought = {"thought": True} if step.kind == "thought" else {}
            async for chunk in step.chunks:
                yield None, _gemini_answer(model, [{"text": chunk, **thought}])
    yield None, _gemini_answer(model, [{"text": ""}], {"finishReason": "STOP"})


async def _whole_gemini(reply: Reply, model: str) -> Json:
    texts = [await _joined(step) for step in reply if isinstance(step, Said) and step.kind == "text"]
    return _gemini_answer(model, [{"text": text} for text in texts], {"finishReason": "STOP"})


def _gemini_failure(status: int) -> Json:
    return {"error": {"code": status, "message": f"scripted failure {status}", "status": "SCRIPTED"}}


async def _joined(step: Said) -> str:
    return "".join([chunk async for chunk in step.chunks])


APIS = (
    Api(re.compile(r"/messages$"), _read_anthropic, _stream_anthropic, _whole_anthropic, _anthropic_failure),
    Api(re.compile(r"/responses$"), _read_responses, _stream_responses, None, _openai_failure),
    Api(re.compile(r"/chat/completions$"), _read_chat, _stream_chat, _whole_chat, _openai_failure),
    Api(
        re.compile(r":(stream)?[gG]enerateContent$"),
        _read_gemini,
        _stream_gemini,
        _whole_gemini,
        _gemini_failure,
    ),
)
