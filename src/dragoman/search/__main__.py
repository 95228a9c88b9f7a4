"""The background process that feeds the index: `python -m dragoman.search STATE`.

A process of its own with the lowest priority, so that neither its work nor its memory is felt by the gateway that
started it; it ends when everything is read, or when that gateway is gone.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

from dragoman.gateway.ports.search import SearchUnavailable
from dragoman.search.feed import Feed
from dragoman.search.histories import Histories
from dragoman.search.index import Index
from dragoman.search.lookup import with_index

LOWEST = 19


def main(state: Path) -> int:
    parent = os.getppid()
    with suppress(OSError):
        os.nice(LOWEST)

    def read(index: Index) -> None:
        feed = Feed(state, index, Histories(os.environ))
        feed.wanted = lambda: os.getppid() == parent
        feed.catch_up()

    try:
        with_index(state, read, _say)
    except SearchUnavailable as error:
        _say(str(error))
        return 1
    return 0


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
