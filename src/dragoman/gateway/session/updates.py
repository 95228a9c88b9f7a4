"""The agent's updates of one session: published, held for a moment, or discarded."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable

from dragoman.gateway.delivery import events
from dragoman.gateway.json_types import JsonObject
from dragoman.gateway.rewriting import dialects, quirks
from dragoman.gateway.rewriting.updates import HISTORY_KINDS, LOOKED_AT, UpdateRewriter
from dragoman.gateway.session.stream import Stream
from dragoman.gateway.session.usage.meter import Meter
from dragoman.wire import limits

REMEMBERED = frozenset({"available_commands_update", "config_option_update", "current_mode_update"})
"""Kinds of updates of which a client that attaches later is sent the last one (G-163)."""
LATEST = frozenset({*REMEMBERED, "usage_update", "plan"})
"""Kinds of which each update replaces the one before."""


class AgentUpdates:
    def __init__(
        self, stream: Stream, see: Callable[[JsonObject], bool], mode_said: Callable[[bytes], bool]
    ) -> None:
        """`see` looks at decoded updates and may edit them; `mode_said` replaces a chunk that announces a mode."""
        self._stream = stream
        self.see = see
        self._mode_said = mode_said
        self._rewriter = UpdateRewriter("", stream.id, see)
        self._held: Callable[[str, bytes], None] | None = None
        """If set, called with the agent's updates instead of publishing them."""
        self.current: dict[str, bytes] = {}
        """The last update of each kind in `LATEST`."""
        self.corrections = quirks.Corrections()
        self.meter = Meter()
        self._discarded: deque[bytes] = deque()
        """The last lines of a replay that was not sent to clients, to compare it with the journal."""
        self._discarded_bytes = 0
        self._discarded_count = 0

    def turn_begins(self) -> None:
        self.publish()
        self.corrections.turn_begins()
        self.meter.turn_begins()

    def bound(self, rewriter: UpdateRewriter) -> None:
        """Updates come from another agent now."""
        self._held = None
        self._rewriter = rewriter

    def receive(self, kind: str, line: bytes, size: int = -1) -> None:
        """Splice and publish: the message path (`rewriting.updates` says which kinds are decoded, what `size` is)."""
        if self._held is not None:
            self._held(kind, line)
            return
        rewriter, feed = self._rewriter, self._stream.feed
        mode_at = rewriter.cut + quirks.MODE_AT
        if line[mode_at : mode_at + 1] == b"[" and self._says_mode(line):
            return
        if kind not in LOOKED_AT:
            if size == len(line) - rewriter.around and line.startswith(rewriter.usual):
                feed.publish(events.tag_of(kind), rewriter.after + line[rewriter.cut :])
            else:
                feed.publish(events.tag_of(kind), rewriter.splice(line, size))
            return
        kind = dialects.RENAMED_KINDS.get(kind, kind)
        for shown in rewriter.rewrite(line, size):
            if kind in LATEST:
                self.current[kind] = shown
            feed.publish(events.tag_of(kind), shown, per_client=self._stream.is_per_client(kind, shown))

    def _says_mode(self, line: bytes) -> bool:
        return line.startswith(quirks.MODE_TEXT, self._rewriter.cut) and self._mode_said(line)

    def state_updates(self) -> Iterable[bytes]:
        """The current commands, mode and options, which are not part of the history (G-163)."""
        return (line for kind, line in self.current.items() if kind in REMEMBERED)

    def note(self, kind: str, line: bytes) -> None:
        """An update that the gateway made replaces the agent's last one of this kind."""
        self.current[kind] = line

    # -- the one slot: discard a replay, or be told of the first update

    def discard(self) -> None:
        """Discard the agent's updates until `publish`: a replay that clients have already."""
        self._held = self._discard
        self._discarded.clear()
        self._discarded_bytes = 0

    def publish(self) -> None:
        """Publish updates again: a replay ended, a turn begins, or the agent answered a prompt that was given up."""
        self._held = None

    @property
    def discarding(self) -> bool:
        return self._held == self._discard

    async def discard_rest(self, quiet: float, most: float) -> None:
        """Discard what still comes of a replay, until nothing has come for `quiet` seconds, then publish again."""
        end = time.monotonic() + most
        before = -1
        while self.discarding and before != self._discarded_count and time.monotonic() < end:
            before = self._discarded_count
            await asyncio.sleep(quiet)
        self.publish()

    @property
    def discarded(self) -> Iterable[bytes]:
        return self._discarded

    def call_at_next_update(self, tell: Callable[[], None]) -> None:
        """Call `tell` at the agent's next update, at no cost for the updates after it."""

        def first(kind: str, line: bytes) -> None:
            self._held = None
            tell()
            self.receive(kind, line)

        self._held = first

    def forget_call(self) -> None:
        if not self.discarding:
            self._held = None

    def _discard(self, kind: str, line: bytes) -> None:
        """Discard an update of a replay, but remember its last lines and the agent's current commands and options."""
        if kind in HISTORY_KINDS:
            self._discarded_count += 1
            self._discarded.append(line)
            self._discarded_bytes += len(line)
            while len(self._discarded) > 1 and (
                len(self._discarded) > limits.DISCARDED_EVENTS
                or self._discarded_bytes > limits.DISCARDED_BYTES
            ):
                self._discarded_bytes -= len(self._discarded.popleft())
        kind = dialects.RENAMED_KINDS.get(kind, kind)
        if kind in REMEMBERED or kind == "usage_update":
            self.current.update((kind, shown) for shown in self._rewriter.rewrite(line))
