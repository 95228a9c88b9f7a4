"""Back-pressure: a client that does not read what it is sent pauses the agents of its sessions.

Without a journal the pause lasts until the client reads: unread events would fill memory. With a journal it is short:
an agent must not wait for a slow client, but reading events back from files costs more than waiting for a client that
is about to read. Each client has an allowance of `MOST_SECONDS`, which shrinks while it pauses agents and grows back
while it does not; a client that is the only one of its sessions has all of it again as soon as it has read. When the
allowance is used up, the agents go on and the client catches up from the journal.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.gateway.access.client import Client
    from dragoman.gateway.agent import AgentConnection

MOST_SECONDS = 0.2
"""Seconds that a slow client may delay its agents for other clients of the same session."""


class Backpressure:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._held: list[AgentConnection] = []
        """Agents paused within the allowance; they are released when it is used up."""
        self._timer: asyncio.TimerHandle | None = None
        self._left = MOST_SECONDS
        self._since = time.monotonic()
        """When `_left` was computed."""

    def writable_changed(self, writable: bool) -> None:
        self._let_go()
        client = self._client
        alone = True
        for attachment in list(client.attachments.values()):
            agent = attachment.session.agent
            journal = attachment.session.journal
            if journal is not None or attachment.reads_journal:
                attachment.catch_up()
            if attachment.reads_journal and attachment.session.owned_elsewhere:
                continue  # reads the journal of the owner at its own pace
            if agent is None:
                continue
            alone = alone and len(attachment.session.attachments) == 1
            if writable:
                agent.release(client)
            elif journal is None or journal.broken:
                agent.hold(client)
            elif attachment.live and not attachment.reads_journal:
                self._held.append(agent)
        if writable and alone:
            self._left = MOST_SECONDS
        if self._held and self._left > 0:
            self._timer = asyncio.get_running_loop().call_later(self._left, self._let_go)
            for agent in self._held:
                agent.hold(self)

    def _let_go(self) -> None:
        """Update the allowance for the time since the last change, and release the agents in `_held`."""
        now = time.monotonic()
        passed, self._since = now - self._since, now
        if self._timer is None:
            self._left = min(self._left + passed, MOST_SECONDS)
        else:
            self._left = max(self._left - passed, 0.0)
            self._timer.cancel()
            self._timer = None
            for agent in self._held:
                agent.release(self)
        self._held = []
