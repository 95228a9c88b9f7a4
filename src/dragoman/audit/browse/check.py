"""`python -P -m dragoman.audit.browse.check FOLDER [ANCHOR…]`: the check in a process of its own.

It takes seconds of computing, which inside a gateway would hold up every message. One JSON object per line: `records`
and `of` while it goes on, at the end `report`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from dragoman.audit import folder as places
from dragoman.audit import record
from dragoman.audit.anchors import read_anchor
from dragoman.audit.verify import verify

KINDNESS = 10
"""Steps by which others go first."""


def main(folder: Path, anchors: list[Path]) -> None:
    os.nice(KINDNESS)
    of = _expected(folder)
    _tell({"records": 0, "of": of})
    heads = (line for path in anchors if path.is_file() for line in read_anchor(path))
    report = verify(folder, heads, progress=lambda records: _tell({"records": records, "of": of})).facts()
    absent = [str(path) for path in anchors if not path.is_file()]
    report["notes"] += [f"the anchor {path} is not there: it proves nothing" for path in absent]
    _tell({"report": report})


def _expected(folder: Path) -> int:
    """About how many records there are."""
    return sum(_length(chain) for chain in places.chains(folder))


def _length(chain: Path) -> int:
    with suppress(OSError, record.Broken, IndexError):
        end = places.end_of_chain(chain)
        return end.n + 1 - int(places.segments(chain)[0].stem) if end is not None else 0
    return 0


def _tell(facts: dict[str, Any]) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(facts) + b"\n")
    sys.stdout.buffer.flush()  # a reader that is gone ends this


def command(folder: Path, anchors: list[Path]) -> Iterator[str]:
    """How to start it."""
    yield from (sys.executable, "-P", "-m", __spec__.name, str(folder), *map(str, anchors))


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(path) for path in sys.argv[2:]])
