"""A session's events on their way to its clients: what every part of the session may publish and record."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from functools import partial
from typing import TYPE_CHECKING

from dragoman.gateway.delivery import events
from dragoman.gateway.delivery.attachment import Attachment
from dragoman.gateway.delivery.feed import DirectFeed, Feed
from dragoman.gateway.delivery.journal_feed import JournalFeed
from dragoman.gateway.json_types import JsonObject
from dragoman.gateway.rewriting.updates import update_line
from dragoman.gateway.session.settings.options import UPDATE as OPTION_UPDATE

if TYPE_CHECKING:
    from dragoman.gateway.access.client import Client
    from dragoman.gateway.agent import AgentConnection

log = logging.getLogger(__name__)

TOOL_KINDS = frozenset({"tool_call", "tool_call_update"})


class Stream:
    def __init__(self, id: str) -> None:
        self.id = id
        self.feed: Feed = DirectFeed(id)
        self.attaching = 0
        """Number of clients that are attaching but not attached yet, or that act without being attached."""

    def begin_attach(self) -> None:
        """Count a client that is about to attach or to act: the session is not unloaded before its `end_attach`."""
        self.attaching += 1

    def end_attach(self) -> None:
        """The client is attached, gave up, or has acted."""
        self.attaching -= 1

    @property
    def attachments(self) -> list[Attachment]:
        return self.feed.attachments

    @property
    def journal(self) -> JournalFeed | None:
        return self.feed if isinstance(self.feed, JournalFeed) else None

    def deliver_through(self, feed: Feed) -> None:
        """Replace the feed; the attachments stay."""
        for attachment in self.feed.attachments:
            feed.add(attachment)
        self.feed = feed

    def release(self, agent: AgentConnection) -> None:
        """Stop pausing an agent for this session's slow clients: other sessions may share it, this one has left it."""
        for attachment in self.attachments:
            attachment.client.release(agent)

    def publish(self, update: JsonObject, author: Client | None = None) -> None:
        """Publish an update that the gateway made."""
        kind, line = str(update.get("sessionUpdate")), update_line(self.id, update)
        self.feed.publish(events.tag_of(kind), line, author, per_client=self.is_per_client(kind, line))

    def is_per_client(self, kind: str, line: bytes) -> bool:
        """Whether clients get different lines: a terminal belongs to one client, some do not know boolean options."""
        if kind in TOOL_KINDS:
            return b'"terminalId"' in line or any(each.mirror is not None for each in self.attachments)
        return kind == OPTION_UPDATE

    def record(self, kind: str, **facts: object) -> None:
        self.feed.record(events.record(kind, **facts))

    def after_events(self, action: Callable[[], None], client: Client | None = None) -> None:
        """Run `action` when everything published so far is sent; with `client`, when it is sent to that client."""

        def hand_over() -> None:
            attachment = client.attachments.get(self.id) if client is not None else None
            if attachment is None or attachment.is_current:
                action()
            else:
                attachment.after(self.feed.delivered, partial(attachment.after_terminals, action))

        self.feed.then(hand_over)

    def after_replay(self, action: Callable[[], None], client: Client) -> None:
        """As `after_events`, but a client that waits for a replay gets that first: it has the events so far."""
        attachment = client.attachments.get(self.id)
        if attachment is not None and isinstance(self.feed, DirectFeed):
            self.feed.after_replay(attachment, partial(self.after_events, action, client))
        else:
            self.after_events(action, client)

    async def wait_settled(self) -> None:
        """Wait until everything published so far is stored and sent."""
        done = asyncio.Event()
        self.feed.then(done.set)
        await done.wait()

    def notice(self, title: str, severity: str = "warning") -> None:
        """Send a notice that users must not miss to all clients: as text to a client that does not know notices."""
        log.warning(title, extra={"session": self.id})
        self.record("notice", title=title, severity=severity)
        self.tell(title, severity)

    def tell(self, title: str, severity: str = "info") -> None:
        """Send a notice to clients that do not read the journal, which has a record of it already."""
        for attachment in self.attachments:
            if not attachment.reads_journal:  # journal readers get the record
                line = self.notice_line(attachment.client, title, severity)
                self.after_events(partial(attachment.send, line), attachment.client)

    def notice_line(self, client: Client, title: str, severity: str = "warning") -> bytes:
        """A notice for one client alone, which is not journaled."""
        if client.capabilities.notices:
            return update_line(self.id, {"sessionUpdate": "notice", "severity": severity, "title": title})
        text = {"type": "text", "text": f"\n> **Dragoman:** {title}\n\n"}
        meta = {"dragoman": {"notice": severity}}
        return update_line(self.id, {"sessionUpdate": "agent_message_chunk", "content": text, "_meta": meta})


async def settle(streams: Collection[Stream], seconds: float) -> set[Stream]:
    """Wait until everything published so far is stored and sent; returns those that were ready in time."""
    waits = {asyncio.ensure_future(stream.wait_settled()): stream for stream in streams}
    if not waits:
        return set()
    done, late = await asyncio.wait(waits, timeout=seconds)
    for wait in late:
        wait.cancel()
    return {waits[wait] for wait in done}
