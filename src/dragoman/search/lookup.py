"""Opens the index for one piece of work; an index that turns out to be damaged is made again, once."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TypeVar

from dragoman.gateway.ports.search import Found, SearchUnavailable, Wanted
from dragoman.gateway.ports.store import StoreError
from dragoman.search.feed import DATABASE, Feed
from dragoman.search.histories import Histories
from dragoman.search.index import FILE, Index, Say, Unusable, open_index, remove
from dragoman.search.query import expression, search

T = TypeVar("T")


def with_index(state: Path, work: Callable[[Index], T], say: Say) -> T:
    """Do `work` with the open index; raises `SearchUnavailable`."""
    try:
        try:
            with closing(open_index(state, say)) as index:
                return work(index)
        except sqlite3.OperationalError:
            raise  # busy, full or read-only: nothing that a new file would change
        except (Unusable, sqlite3.DatabaseError) as error:
            say(f"{state / FILE} is damaged ({error}): it is made again from the journals")
            remove(state)
            with closing(open_index(state, say)) as index:
                return work(index)
    except (StoreError, OSError, sqlite3.Error, Unusable) as error:
        raise SearchUnavailable(f"What was said cannot be searched now: {error}") from error


def look_up(state: Path, wanted: Wanted, say: Say, seconds: float = 0.0) -> Found:
    """Read what is new for `seconds` at most, then search."""

    def work(index: Index) -> Found:
        left = Feed(state, index, Histories(os.environ)).catch_up(seconds)
        return Found(search(index, wanted), left.sessions)

    return with_index(state, work, say)


def read_all(state: Path, say: Say = lambda text: None) -> None:
    """Read everything that is new, if there are sessions."""
    if (state / DATABASE).exists():
        with_index(state, lambda index: Feed(state, index, Histories(os.environ)).catch_up(), say)


def check_query(wanted: Wanted) -> None:
    """Raise `BadQuery` if there is nothing to search for."""
    expression(wanted.text)
