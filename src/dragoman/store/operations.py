"""What waits for the writer: each is settled once, in the event loop, in the order it was queued."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec

from dragoman.gateway.ports.store import Done, StoreError
from dragoman.store.directory import Columns


class Append(msgspec.Struct):
    """Events for one journal."""

    session_id: str
    epoch: int
    first_seq: int
    events: list[bytes]
    size: int
    ts: int
    done: Done
    error: StoreError | None = None

    def settle(self) -> None:
        self.done(self.error)


class Update(msgspec.Struct):
    """New values for one record."""

    session_id: str
    epoch: int
    columns: Columns
    done: Done | None
    error: StoreError | None = None
    size: int = 0

    def settle(self) -> None:
        if self.done is not None:
            self.done(self.error)


class Task(msgspec.Struct):
    """Anything else that writes, with someone waiting for its result."""

    run: Callable[[sqlite3.Connection], Any]
    future: asyncio.Future[Any]
    value: Any = None
    error: StoreError | None = None
    size: int = 0

    def settle(self) -> None:
        if self.future.done():
            return  # whoever asked was cancelled meanwhile
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.value)


Operation: TypeAlias = Append | Update | Task
