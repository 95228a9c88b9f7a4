"""Finds records: all chains as one sequence in the order of time.

A question about one session leaves out the chains that are known not to have it (`ended` in the index names their
sessions), and reads of the others only what `.seek` files point to.
"""

from __future__ import annotations

import heapq
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from dragoman.audit import folder as places
from dragoman.audit import record, seek
from dragoman.wire.timestamps import timestamp

COARSE = 1000
"""Milliseconds by which the time of a file may be behind that of its last record."""
HIDDEN = frozenset({"head"})
"""Kinds of records that are not about anything that happened."""

BOOKKEEPING = frozenset({"chain", "gateway_started", "gateway_stopped"})
"""Kinds of records that every process of ours begins and ends with."""

NUMBER = re.compile("[0-9]{1,15}")
"""Of a record."""


@dataclass(frozen=True, slots=True)
class Query:
    """All members that are set have to hold."""

    session: str | None = None
    agent: str | None = None
    tool: str | None = None
    decision: str | None = None
    by: str | None = None
    kind: str | None = None
    since: str = ""
    until: str = ""
    unmediated: bool = False
    call: str | None = None
    of_sessions: bool = False
    """Only records that belong to a session: others tell of tokens, logins and configuration."""

    decided: bool = False
    """Only what was decided about tool calls: by a rule that allowed or denied, or by an answer."""

    bookkeeping: bool = True
    """Also records of `BOOKKEEPING`; those of a kind that is asked for are found anyway."""

    def holds(self, found: dict[str, Any]) -> bool:
        if found["kind"] in HIDDEN:
            return False
        if (self.since and found["at"] < self.since) or (self.until and found["at"] >= self.until):
            return False
        if self.unmediated and found["kind"] != "unmediated" and found.get("unmediated") is not True:
            return False
        if self.kind is not None and found["kind"] != self.kind:
            return False
        if not self.bookkeeping and self.kind is None and found["kind"] in BOOKKEEPING:
            return False
        if self.decided and found.get("decision") not in ("allow", "deny") and "outcome" not in found:
            return False
        if self.of_sessions and not isinstance(found.get("session"), str):
            return False
        if self.by is not None and self.by not in (found.get("by"), found.get("identity")):
            return False
        return all(
            getattr(self, name) in (None, found.get(name))
            for name in ("session", "agent", "tool", "decision", "call")
        )


def query(folder: Path, asked: Query) -> Iterator[dict[str, Any]]:
    """The records that match, the oldest first; each has its `id`."""
    begun, without = _index(folder, asked.session)
    chains = [chain for chain in places.chains(folder) if chain.name not in without]
    waiting = sorted(chains, key=lambda chain: begun.get(chain.name, ""), reverse=True)
    reading: list[tuple[str, int, dict[str, Any], Iterator[dict[str, Any]]]] = []
    order = 0
    while waiting or reading:
        # Only chains that had begun by then are open: there may be thousands.
        while waiting and (not reading or begun.get(waiting[-1].name, "") <= reading[0][0]):
            order += 1
            records = _of_chain(waiting.pop(), asked)
            if (first := next(records, None)) is not None:
                heapq.heappush(reading, (first["at"], order, first, records))
        if reading:
            _, place, found, records = reading[0]
            yield found
            following = next(records, None)
            if following is None:
                heapq.heappop(reading)
            else:
                heapq.heapreplace(reading, (following["at"], place, following, records))


def latest(folder: Path, count: int, asked: Query | None = None) -> list[dict[str, Any]]:
    """The last `count` records that match, the oldest first."""
    asked = asked or Query()
    kept: list[tuple[str, int, dict[str, Any]]] = []
    paths = [(path, chain.name) for chain in places.chains(folder) for path in places.segments(chain)]
    paths.sort(key=lambda each: _changed(each[0]), reverse=True)
    for order, (path, chain) in enumerate(paths):
        if len(kept) >= count and _changed(path) < kept[0][0]:
            break  # this segment, and every later one, ended before the records that were found
        for each in _backwards(path, chain):
            if len(kept) >= count and each["at"] < kept[0][0]:
                break
            if asked.holds(each):
                heapq.heappush(kept, (each["at"], -order * 1_000_000_000 + each["n"], each))
                if len(kept) > count:
                    heapq.heappop(kept)
    return [each for *_, each in sorted(kept, key=lambda item: item[:2])]


def show(folder: Path, id: str) -> dict[str, Any] | None:
    """The record with the id `CHAIN:NUMBER`; None if there is none."""
    line = line_of(folder, id)
    return _record(line, id.partition(":")[0]) if line is not None else None


def line_of(folder: Path, id: str) -> bytes | None:
    """A record as it was written, without its line feed."""
    chain, _, number = id.partition(":")
    if not places.CHAIN_ID.fullmatch(chain) or not NUMBER.fullmatch(number):
        return None
    paths = [path for path in places.segments(folder / chain) if int(path.stem) <= int(number)]
    for _, line in _lines(paths[-1]) if paths else ():
        with suppress(record.Broken):
            if record.read_head(line).n == int(number):
                return line
    return None


def sessions_like(folder: Path, beginning: str) -> list[str]:
    """The ids of recorded sessions that begin so."""
    found: set[str] = set()
    listed: set[str] = set()
    for line in places.read_index(folder)[0]:
        with suppress(*record.UNREADABLE):
            told = _told.decode(line)
            if told.sessions is not None:
                listed.add(told.chain)
                found.update(told.sessions)
    for chain in places.chains(folder):
        for path in places.segments(chain) if chain.name not in listed else ():
            known = seek.stored_seek(path)
            found.update(known.sessions if known is not None else _sessions_in(path))
    return sorted(session for session in found if session.startswith(beginning))


def _sessions_in(path: Path) -> Iterator[str]:
    for _, line in _lines(path):
        with suppress(record.Broken):
            session = record.read_head(line).session
            if isinstance(session, str):
                yield session


class Follower:
    """New records of any process, by their places in the files, since a clock may go back.

    Begins with what is written after it was made.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read = 0
        """How far the index was read."""
        self._open: dict[str, dict[Path, int]] = {}
        """By chain that has not ended: how far its segments were read."""
        self._ended: list[str] = []
        self._read_index()
        for chain in self._open:
            self._open[chain] = {path: _size(path) for path in places.segments(folder / chain)}

    def new(self) -> list[dict[str, Any]]:
        """The records since the last call, in the order of time of each chain."""
        self._read_index()
        found: list[dict[str, Any]] = []
        for chain, sizes in self._open.items():
            for path in places.segments(self._folder / chain):
                lines, sizes[path] = _lines_from(path, sizes.get(path, 0))
                for line in lines:
                    with suppress(record.Broken):
                        facts = record.read_record(line)
                        found.append({"id": f"{chain}:{facts['n']}", **facts})
        for chain in self._ended:
            self._open.pop(chain, None)
        return found

    def _read_index(self) -> None:
        """Learn of chains that began and ended; those that ended are read once more."""
        lines, self._read = places.read_index(self._folder, self._read)
        self._ended = []
        for line in lines:
            with suppress(record.Broken):
                facts = record.read_record(line)
                chain = str(facts.get("chain"))
                if facts.get("kind") == "begun":
                    self._open.setdefault(chain, {})
                elif facts.get("kind") == "ended":
                    self._ended.append(chain)


def forget_places(folder: Path) -> None:
    """Remove what was remembered about segments; the next reader reads them anew."""
    for chain in places.chains(folder):
        for path in chain.glob(f"*{seek.SUFFIX}"):
            path.unlink(missing_ok=True)


def _index(folder: Path, session: str | None) -> tuple[dict[str, str], set[str]]:
    """By the index: when each chain began, and the chains that have no record of the session."""
    begun: dict[str, str] = {}
    without: set[str] = set()
    for line in places.read_index(folder)[0]:
        with suppress(*record.UNREADABLE):
            told = _told.decode(line)
            if told.kind == "begun":
                begun[told.chain] = told.at
            elif told.sessions is not None and session is not None and session not in told.sessions:
                without.add(told.chain)
    return begun, without


class _Told(msgspec.Struct, frozen=True):
    """The members of a line of the index that are used here."""

    kind: str
    at: str
    chain: str = ""
    sessions: list[str] | None = None
    """Of `ended`: all sessions of the chain, if they are not too many."""


_told = msgspec.json.Decoder(_Told)


def _of_chain(chain: Path, asked: Query) -> Iterator[dict[str, Any]]:
    paths = places.segments(chain)
    for path in paths:
        known = seek.stored_places(path, asked.session)
        if known is None and path is not paths[-1]:
            seek.make_seek(path)
            known = seek.stored_places(path, asked.session)
        if known is not None and (
            (asked.since and known.last < asked.since) or (asked.until and known.first >= asked.until)
        ):
            continue
        if known is not None and asked.session is not None:
            found = _at(path, known.offsets)
        elif asked.session is not None:
            found = _with(path, asked.session.encode())
        else:
            found = (line for _, line in _lines(path))
        for line in found:
            with suppress(record.Broken):
                each = _record(line, chain.name)
                if asked.holds(each):
                    yield each


def _record(line: bytes, chain: str) -> dict[str, Any]:
    found = record.read_record(line)
    return {"id": f"{chain}:{found['n']}", **found}


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The whole lines of a segment with their offsets."""
    offset = 0
    with suppress(OSError), places.open_regular(path) as file:
        for line in places.read_lines(file):
            if line.endswith(b"\n"):
                yield offset, line[:-1]
            offset += len(line)


def _with(path: Path, text: bytes) -> Iterator[bytes]:
    """The lines in which a text stands."""
    with suppress(OSError), places.open_regular(path) as file:
        data = file.read(places.LONGEST)
        place = data.find(text)
        while place >= 0:
            start, end = data.rfind(b"\n", 0, place) + 1, data.find(b"\n", place)
            if end < 0:
                return
            yield data[start:end]
            place = data.find(text, end)


def _at(path: Path, offsets: list[int]) -> Iterator[bytes]:
    if not offsets:
        return
    with suppress(OSError), places.open_regular(path) as file:
        for offset in offsets:
            file.seek(offset)
            yield file.readline(places.LONGEST)[:-1]


def _backwards(path: Path, chain: str) -> Iterator[dict[str, Any]]:
    """The records of a segment, the last one first."""
    with suppress(OSError), places.open_regular(path) as file:
        place, tail, size = file.seek(0, os.SEEK_END), b"", places.BLOCK
        while place > 0 and len(tail) <= places.LONGEST:
            size = min(2 * size if tail else places.BLOCK, place)
            place -= size
            file.seek(place)
            first, *lines = (file.read(size) + tail).split(b"\n")
            tail = first if place > 0 else b""
            for line in reversed([first, *lines] if place == 0 else lines):
                with suppress(record.Broken):
                    if line:
                        yield _record(line, chain)


def _changed(path: Path) -> str:
    """A time after which the segment was not written to."""
    with suppress(OSError):
        return timestamp(path.stat().st_mtime_ns // 1_000_000 + COARSE)
    return ""


def _lines_from(path: Path, offset: int) -> tuple[list[bytes], int]:
    """The whole lines from `offset` on, and where they end."""
    with suppress(OSError), places.open_regular(path) as file:
        file.seek(offset)
        *lines, torn = file.read(places.LONGEST).split(b"\n")
        return lines, file.tell() - len(torn)
    return [], offset


def _size(path: Path) -> int:
    with suppress(OSError, record.Broken):
        end = places.end_of_file(path)
        return end.offset if end is not None else 0
    return 0
