"""A session's conversation as text: the recap for a restarted agent, and Markdown for users."""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TypeAlias

from dragoman.gateway.delivery import events
from dragoman.gateway.delivery.conversation.tool_calls import ToolCalls
from dragoman.gateway.delivery.conversation.undone import NOTHING, Undone, read_undone
from dragoman.gateway.json_types import JsonObject, as_object, decode_object, own_meta
from dragoman.gateway.ports.store import Row, Store, StoreError
from dragoman.wire import message
from dragoman.wire.errors import Malformed

RECAP_BYTES = 100_000
"""Length of a recap: the end of the conversation, well below any model's context window."""
RECAP_BEGINS = "This conversation began in an earlier session"
RECENT_EVENTS = 1000

USER = "User"
REPORTED_USER = "User, as the agent tells it"
"""Speaker of user messages as an agent reports them: its replay of a session that only it knew, or an invention."""
LOST = "Lost"
"""Speaker of paragraphs that name events which the journal does not have."""
UNDONE = "[What followed here was undone.]"
DECISION = "Decision"
"""Speaker of paragraphs that tell how a tool call was decided."""
_LOST_TAG = b""
_DECISION_TAG = b"decision"
Note: TypeAlias = Callable[[bytes], JsonObject | None]
"""Reads a record: `title`, `toolCallId` and how it was `decided`, of a decision; None for any other."""

_SEPARATE = frozenset({"Tool", "Output", LOST, DECISION})
"""Speakers whose texts are separate paragraphs, even one after another."""
_SPEAKERS = {
    "user_message_chunk": USER,
    "agent_message_chunk": "Assistant",
    "agent_thought_chunk": "Thinking",
}


async def for_agent(store: Store, session_id: str) -> str:
    """The recap for a restarted agent; empty if there is no conversation yet."""
    recent, whole = await _recent(store, session_id)
    shown = [(speaker, text) for speaker, text in _join(recent) if speaker != "Thinking"]
    told = "\n\n".join(f"[{text}]" if speaker == LOST else f"{speaker}: {text}" for speaker, text in shown)
    if not told:
        return ""
    if not whole or len(told) > RECAP_BYTES:
        told = "[…]\n" + told[-RECAP_BYTES:]
    return (
        f"{RECAP_BEGINS} that you do not remember. Here is its transcript, as context "
        f"for what follows; do not repeat work that is done.\n\n<transcript>\n{told}\n</transcript>"
    )


def is_recap(title: object) -> bool:
    """Whether a title was made from a recap, which is no text of the user."""
    return isinstance(title, str) and " ".join(title.split()).startswith(RECAP_BEGINS)


async def last_prompt(store: Store, session_id: str) -> str | None:
    """The last text of the user; in a session that only the agent knew, the last one that the agent reports."""
    recent, _ = await _recent(store, session_id)
    for wanted in (USER, REPORTED_USER):
        for speaker, text in reversed(recent):
            if speaker == wanted and text:
                return text
    return None


async def last_answer(store: Store, session_id: str) -> str | None:
    """The agent's last message as one text; None if it may be lost."""
    recent, _ = await _recent(store, session_id)
    for speaker, text in reversed(_join(recent)):
        if speaker in ("Assistant", LOST):
            return text.strip() if speaker == "Assistant" else None
    return None


async def lost_notice(store: Store, session_id: str) -> str | None:
    """A sentence about the events that are damaged or missing in the whole journal; None if there are none."""
    try:
        lost = [row async for row in events.rows(store, session_id) if row.damaged]
    except StoreError as error:
        return f"The journal of this session cannot be read: {error}"
    if not lost:
        return None
    first, last = lost[0].first_seq, lost[-1].last_seq
    count = sum(row.count for row in lost)
    if count == last - first + 1:
        return events.lost_notice(first, last)
    return f"{count} of the events {first} to {last} are damaged or missing in the journal."


async def as_markdown(store: Store, session_id: str, note: Note | None = None) -> AsyncIterator[str]:
    """The conversation in pieces of Markdown, with the notes about records."""
    async for speaker, text in paragraphs(store, session_id, note):
        if speaker == "Output":
            yield _folded(text)
        elif speaker in ("Tool", DECISION):
            yield f"- *{text}*\n\n"
        elif speaker == LOST:
            yield f"*[{text}]*\n\n"
        elif speaker == "Thinking":
            quoted = "\n".join(f"> {line}" for line in text.splitlines())
            yield f"{quoted}\n\n"
        else:
            yield f"**{speaker}**\n\n{text.strip()}\n\n"


async def paragraphs(
    store: Store, session_id: str, note: Note | None = None
) -> AsyncIterator[tuple[str, str]]:
    """Speaker and text of each paragraph: adjacent chunks of one speaker are joined; a tool call is told at its end."""
    speaker, parts = "", list[str]()
    async for who, text in _told(store, session_id, note):
        if text and (who != speaker or who in _SEPARATE):
            if parts:
                yield speaker, "".join(parts)
            speaker, parts = who, []
        if text:
            parts.append(text)
    if parts:
        yield speaker, "".join(parts)


async def _told(store: Store, session_id: str, note: Note | None) -> AsyncIterator[tuple[str, str]]:
    """Speaker and text of each update, tool calls by their last title."""
    calls = ToolCalls()
    async for tag, update in _tagged(store, session_id, note):
        kind = update.get("sessionUpdate")
        if tag == _DECISION_TAG:
            words = str(update.get("decided") or "")
            if not words or not calls.decided(str(update.get("toolCallId")), words):
                yield DECISION, str(update["title"]) + (f": {words}" if words else "")
        elif tag != _LOST_TAG and kind in ("tool_call", "tool_call_update"):
            for told in calls.see(update):
                yield told
        else:
            if tag == events.PROMPT:  # the turn before has ended
                for told in calls.rest():
                    yield told
            yield said(update, tag)
    for told in calls.rest():
        yield told


def _folded(output: str) -> str:
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall(r"`+", output)), 0)
    return f"<details><summary>Output</summary>\n\n{fence}\n{output}\n{fence}\n\n</details>\n\n"


async def updates(store: Store, session_id: str) -> AsyncIterator[JsonObject]:
    """The updates of a conversation that are not undone, oldest first."""
    async for tag, update in _tagged(store, session_id):
        if tag != _LOST_TAG:
            yield update


async def _tagged(
    store: Store, session_id: str, note: Note | None = None
) -> AsyncIterator[tuple[bytes, JsonObject]]:
    """The updates with their tags; lost events have the tag `_LOST_TAG` and a sentence as title."""
    undone = await read_undone(store, session_id)
    async for row in events.rows(store, session_id):
        for tagged in _shown(row, undone, note):
            yield tagged


def _shown(
    row: Row, undone: Undone = NOTHING, note: Note | None = None
) -> Iterator[tuple[bytes, JsonObject]]:
    if row.damaged:
        yield _LOST_TAG, {"title": events.lost_notice(row.first_seq, row.last_seq)}
    for seq, event in enumerate(row.events(), row.first_seq):
        if undone and seq in undone:
            if note is not None and undone.begins(seq):
                yield _DECISION_TAG, {"title": UNDONE}
        elif event.startswith(events.UNKEPT):
            yield _LOST_TAG, {"title": events.unkept_notice(events.read_record(event))}
        elif event[0] in events.REPLAYED:
            update = read_update(event[1:])
            if update is not None:
                yield event[:1], update
        elif note is not None and event[:1] == events.RECORD and (decision := note(event)):
            yield _DECISION_TAG, decision


async def is_in_turn(store: Store, session_id: str, pages: int = sys.maxsize) -> bool | None:
    """Whether a journal ends in the middle of a turn: no turn ended after its last prompt.

    None if its last `pages` have neither, or if events after the prompt are lost.
    """
    before = await store.last_seq(session_id) + 1
    while before > 1 and (rows := await store.read_before(session_id, before, RECENT_EVENTS)):
        pages -= 1
        for row in reversed(rows):
            if row.damaged:
                return None
            for event in reversed(row.events()):
                if event[:1] == events.PROMPT:
                    return True
                if event.startswith(events.TURN_ENDED):
                    return False
                if event.startswith(events.UNKEPT):
                    return None
        before = rows[0].first_seq
        if not pages:
            return None
    return False


async def _recent(store: Store, session_id: str) -> tuple[list[tuple[str, str]], bool]:
    """The end of a conversation, about `RECAP_BYTES` long, and whether that is all: long ones are not read whole.

    What was undone is left out.
    """
    found: list[tuple[str, str]] = []
    size = 0
    undone = await read_undone(store, session_id)
    before = await store.last_seq(session_id) + 1
    while before > 1 and size < RECAP_BYTES:
        rows = await store.read_before(session_id, before, RECENT_EVENTS)
        if not rows:
            break
        earlier = [said(update, tag) for row in rows for tag, update in _shown(row, undone)]
        found = [*earlier, *found]
        size += sum(len(text) for _, text in earlier)
        before = rows[0].first_seq
    return found, before <= 1


def _join(found: list[tuple[str, str]]) -> list[tuple[str, str]]:
    joined: list[tuple[str, str]] = []
    for speaker, texts in itertools.groupby((each for each in found if each[1]), key=lambda each: each[0]):
        parts = [text for _, text in texts]
        joined.extend(
            [(speaker, part) for part in parts] if speaker in _SEPARATE else [(speaker, "".join(parts))]
        )
    return joined


def read_update(line: bytes) -> JsonObject | None:
    try:
        return as_object(decode_object(message.members(line)["params"]).get("update"))
    except (Malformed, KeyError):
        return None


def said(update: JsonObject, tag: bytes = events.PROMPT) -> tuple[str, str]:
    """Speaker and text of an update; two empty strings if it has no text.

    A `user_message_chunk` is the user's own text only with the tag PROMPT; else it is the agent's account.
    """
    if tag == _LOST_TAG:
        return LOST, str(update["title"])
    kind = str(update.get("sessionUpdate"))
    if kind == "user_message_chunk" and tag != events.PROMPT:
        return REPORTED_USER, _text(as_object(update.get("content")))
    if kind in _SPEAKERS:
        return _SPEAKERS[kind], _text(as_object(update.get("content")))
    if kind == "tool_call":
        return "Tool", str(update.get("title") or update.get("kind") or "tool call")
    if kind == "tool_call_update" and update.get("status") == "failed":
        return "Tool", f"{update.get('title') or 'tool call'} failed"
    if kind == "tool_call_update" and own_meta(update).get("unmediated") is True:
        return "Tool", f"{update.get('title') or 'tool call'} ran before the rules saw it (unmediated)"
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
