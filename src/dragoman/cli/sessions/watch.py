"""`dragoman sessions attach --read-only`: shows a session by polling its journal.

Watching changes nothing: no agent is restarted for it, no question waits for it, and the owner does not notice.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from typing import Any, Protocol

from dragoman.cli.sessions.find import find, reading
from dragoman.cli.terminal.narrator import Narrator, describe_tool
from dragoman.cli.terminal.screen import Screen
from dragoman.config.paths import Paths
from dragoman.gateway.delivery import events
from dragoman.gateway.delivery.transcript import read_update
from dragoman.gateway.json_types import JsonObject, as_object
from dragoman.gateway.ports.store import SessionRecord, Store

LOOK_AGAIN = 0.15
"""Seconds between reads of the journal: a process is not notified when another has written."""


def run(given: str, paths: Paths) -> int:
    """Returns the exit code."""
    return asyncio.run(_run(given, paths))


async def _run(given: str, paths: Paths) -> int:
    screen = Screen(sys.stdout, sys.stdout)
    async with reading(paths) as store:
        record = await find(store, given)
        work = Watch(store, record, Narrator(screen, prompts=True), screen.broken).run()
        watch = asyncio.ensure_future(work)
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, watch.cancel)
        try:
            await watch
        except asyncio.CancelledError:
            pass  # Ctrl-C ends the command
        screen.end_line()
    return 0


class Teller(Protocol):
    """Shows what a watch reads; `Narrator` does it line by line."""

    def tell(self, update: JsonObject, *, reported: bool = ...) -> None: ...

    def turn_ended(self, result: JsonObject) -> None: ...

    def say(self, text: str, **how: Any) -> None: ...


class Watch:
    def __init__(self, store: Store, record: SessionRecord, teller: Teller, ended: asyncio.Event) -> None:
        self._store = store
        self._record = record
        self._narrator = teller
        self._ended = ended
        self._position = 0

    async def run(self) -> None:
        """Show events until the session has no owner or `ended` is set, as when the output is closed."""
        while not self._ended.is_set():
            live = await self._live()  # checked before reading, so that no last event is missed
            await self._read()
            if not live:
                self._narrator.say("No process runs this session any more.", dim=True)
                return
            await asyncio.sleep(LOOK_AGAIN)

    async def _live(self) -> bool:
        record = await self._store.get(self._record.id)
        return record is not None and bool(await self._store.holders([record]))

    async def _read(self) -> None:
        async for row in events.rows(self._store, self._record.id, self._position):
            if row.damaged:
                self._narrator.say(f"! {events.lost_notice(row.first_seq, row.last_seq)}", fg="red")
            for event in row.events():
                self._show(event)
            self._position = row.last_seq

    def _show(self, event: bytes) -> None:
        if event[0] in events.SHOWN:
            self._narrator.tell(read_update(event[1:]) or {}, reported=event[:1] != events.PROMPT)
        elif event[:1] == events.RECORD:
            self._show_record(events.read_record(event))

    def _show_record(self, record: JsonObject) -> None:
        kind = record.get("dragoman")
        if kind == "turn_ended":
            self._narrator.turn_ended(record)
        elif kind == "question" and "state" not in record:
            self._narrator.say(f"? {describe_tool(as_object(record.get('toolCall')))}", fg="yellow")
        elif kind == "notice":
            self._narrator.say(f"! {record.get('title')}", fg="yellow")
        elif kind == "unkept":
            self._narrator.say(f"! {events.unkept_notice(record)}", fg="red")
