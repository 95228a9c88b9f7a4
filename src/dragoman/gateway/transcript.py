"""A session's conversation as text: for an agent that must be told of it, and for people."""

from __future__ import annotations

from collections.abc import AsyncIterator

from dragoman.gateway import events
from dragoman.gateway.json_types import JsonObject, as_object, decode_object
from dragoman.gateway.ports.store import Store
from dragoman.wire import message
from dragoman.wire.errors import Malformed

SEED_BYTES = 100_000
"""How much of a conversation a new agent is told: the end of it, well below any model's window."""
READ_BYTES = 1024 * 1024

_SPEAKERS = {
    "user_message_chunk": "User",
    "agent_message_chunk": "Assistant",
    "agent_thought_chunk": "Thinking",
}


async def for_agent(store: Store, session_id: str) -> str:
    """What a new agent is told; empty if nothing was said yet."""
    parts: list[str] = []
    async for speaker, text in paragraphs(store, session_id):
        if speaker != "Thinking":
            parts.append(f"{speaker}: {text}")
    told = "\n\n".join(parts)
    if not told:
        return ""
    if len(told) > SEED_BYTES:
        told = "[…]\n" + told[-SEED_BYTES:]
    return (
        "This conversation began in an earlier session that you do not remember. Here is its transcript, as context "
        f"for what follows; do not repeat work that is done.\n\n<transcript>\n{told}\n</transcript>"
    )


async def as_markdown(store: Store, session_id: str) -> AsyncIterator[str]:
    """Pieces of Markdown, for people."""
    async for speaker, text in paragraphs(store, session_id):
        if speaker == "Tool":
            yield f"- *{text}*\n\n"
        elif speaker == "Thinking":
            quoted = "\n".join(f"> {line}" for line in text.splitlines())
            yield f"{quoted}\n\n"
        else:
            yield f"**{speaker}**\n\n{text.strip()}\n\n"


async def paragraphs(store: Store, session_id: str) -> AsyncIterator[tuple[str, str]]:
    """Who said what: chunks of one speaker are one paragraph, a tool call is its title and outcome."""
    speaker, text = "", ""
    async for update in updates(store, session_id):
        who, said = _said(update)
        if not said:
            continue
        if who == speaker and who != "Tool":
            text += said
            continue
        if text:
            yield speaker, text
        speaker, text = who, said
    if text:
        yield speaker, text


async def updates(store: Store, session_id: str) -> AsyncIterator[JsonObject]:
    """The updates of a conversation, oldest first."""
    position = 0
    while rows := await store.read(session_id, position, READ_BYTES):
        for row in rows:
            for event in row.events():
                if event[0] in events.REPLAYED:
                    update = read_update(event[1:])
                    if update is not None:
                        yield update
            position = row.last_seq


def read_update(line: bytes) -> JsonObject | None:
    try:
        return as_object(decode_object(message.members(line)["params"]).get("update"))
    except (Malformed, KeyError):
        return None


def _said(update: JsonObject) -> tuple[str, str]:
    kind = str(update.get("sessionUpdate"))
    if kind in _SPEAKERS:
        return _SPEAKERS[kind], _text(as_object(update.get("content")))
    if kind == "tool_call":
        return "Tool", str(update.get("title") or update.get("kind") or "tool call")
    if kind == "tool_call_update" and update.get("status") == "failed":
        return "Tool", f"{update.get('title') or 'tool call'} failed"
    return "", ""


def _text(content: JsonObject) -> str:
    kind = content.get("type")
    if kind == "text":
        return str(content.get("text", ""))
    if kind == "resource_link":
        return f"[{content.get('name')}]({content.get('uri')})"
    if kind == "resource":
        resource = as_object(content.get("resource"))
        return str(resource.get("text") or f"[{resource.get('uri')}]")
    return f"[{kind}]" if kind else ""
