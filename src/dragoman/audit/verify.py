"""Checks the audit: what holds here, what is signed up to when, and what copies of heads elsewhere prove.

Without a copy of heads elsewhere (an *anchor*), who has the key and may write to the folder can make it consistent again
after a change. With one, whatever was recorded before the anchored head cannot be changed, removed or cut off unseen.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import time_ns
from typing import Any, BinaryIO

from dragoman.audit import folder as places
from dragoman.audit import record, seek
from dragoman.audit.keys import is_signed_by, public_keys
from dragoman.audit.prune import Removal, Retention, read_removal
from dragoman.audit.report import ChainReport, Problem, Report
from dragoman.audit.seek import Places

MOST_PROBLEMS = 100
"""Problems told of one chain: after these it is broken enough."""


@dataclass(slots=True)
class Index:
    """What the index says, checked as a chain itself."""

    hashes: list[str] = field(default_factory=lambda: [record.BEGINNING])
    """By the number of the line."""
    begun: dict[str, int] = field(default_factory=dict)
    ended: dict[str, tuple[int, dict[str, Any]]] = field(default_factory=dict)
    """Line and facts of a chain's end."""
    pruned: dict[str, list[Removal]] = field(default_factory=dict)
    """What was removed of a chain's beginning, in the order of time; only what is signed."""
    offset: int = 0
    """How far the file was read."""


def verify(
    folder: Path,
    anchored: Iterable[bytes] = (),
    *,
    trusted: Iterable[str] = (),
    progress: Callable[[int], None] = lambda records: None,
    now: int | None = None,
    chosen: Container[str] | None = None,
) -> Report:
    """Check all chains against themselves, the index, the signatures, and copies of heads kept elsewhere.

    `trusted`: fingerprints of the only keys that count, as written down elsewhere; else those in the folder do.
    `now` is the time in milliseconds, if it is not that of the clock. `chosen` limits it to these chains.
    """
    present = time_ns() // 1_000_000 if now is None else now
    return _Verifier(folder, anchored, frozenset(trusted), progress, present).run(chosen)


class _Verifier:
    def __init__(
        self,
        folder: Path,
        anchored: Iterable[bytes],
        trusted: frozenset[str],
        progress: Callable[[int], None],
        now: int,
    ) -> None:
        self._folder = folder
        self.now = now
        self._progress = progress
        self._report = Report()
        self._index = Index()
        self._keys = public_keys(folder)
        self._trusted = trusted
        self._anchored: dict[str, dict[int, bytes]] = {}
        self._anchored_index = 0
        heads = [head for line in anchored if (head := self._read_anchor(line)) is not None]
        self.retention = Retention(heads)

    def run(self, chosen: Container[str] | None = None) -> Report:
        self.read_index()
        names = dict.fromkeys((*self._index.begun, *self._anchored))
        names.update(dict.fromkeys(path.name for path in places.chains(self._folder)))
        for name in names if chosen is None else filter(chosen.__contains__, names):
            self._report.chains.append(_ChainCheck(self, name).run())
        for chain in self._report.chains:
            ended = self._index.ended.get(chain.chain)
            if ended is not None and ended[0] <= self._anchored_index:
                chain.anchored, chain.open_since = chain.last, ""
        return self._report

    def _read_anchor(self, line: bytes) -> dict[str, Any] | None:
        line = line.rstrip(b"\r\n")
        if not line:
            return None
        try:
            facts = record.read_record(line)
            n, chain, kind = facts["n"], facts.get("chain"), facts["kind"]
        except (record.Broken, KeyError) as error:
            self._report.notes.append(f"a line of the anchor is no head and is ignored: {error}")
            return None
        if kind != "head" or not isinstance(n, int):
            return None  # records may be sent there too
        if not isinstance(chain, str) or not places.CHAIN_ID.fullmatch(chain):
            return None
        self._report.anchors += 1
        self._anchored.setdefault(chain, {})[n] = line
        return facts

    def problem(self, chain: str, number: int, text: str) -> None:
        self._report.problems.append(Problem(chain, number, text))

    def note(self, text: str) -> None:
        self._report.notes.append(text)

    def count(self) -> None:
        self._report.records += 1
        if self._report.records % 10_000 == 0:
            self._progress(self._report.records)

    def signer_problem(self, line: bytes, facts: dict[str, Any]) -> str | None:
        """None if a head is signed by a key that counts."""
        made = record.split_signature(line)
        key = facts.get("key")
        if made is None or not isinstance(key, str):
            return "it is not signed"
        if self._trusted and key not in self._trusted:
            return f"it is signed with another key, {key}"
        public = self._keys.get(key)
        if public is None:
            return f"its key {key} is not known here"
        return None if is_signed_by(public, *made) else "its signature does not match"

    def index_problem(self, facts: dict[str, Any]) -> str | None:
        """None if the index still is what a record says it was."""
        told = facts.get("index")
        if not isinstance(told, list) or len(told) != 2 or not isinstance(told[0], int):
            return "it does not say what the index was"
        n, hash = told
        if n >= len(self._index.hashes):
            self.read_index()  # it may have grown since
        if not 0 <= n < len(self._index.hashes):
            return (
                f"the index had {n} lines then and has {len(self._index.hashes) - 1} now: its end was cut off"
            )
        return None if self._index.hashes[n] == hash else f"the index was changed at or before its line {n}"

    def read_index(self) -> None:
        """Read what the index has got since the last look: processes may be writing."""
        index = self._index
        try:
            lines, index.offset = places.read_index(self._folder, index.offset)
        except OSError as error:
            self.problem("index", len(index.hashes), f"it cannot be read: {error.strerror}")
            return
        for line in lines:
            self._index_line(line)
        if (self._folder / places.INDEX).is_file():
            rest = (self._folder / places.INDEX).stat().st_size - index.offset
            if rest > places.LONGEST:
                self.problem("index", len(index.hashes), f"the line is damaged: {places.TOO_LONG}")

    def _index_line(self, line: bytes) -> None:
        index = self._index
        expected, previous = len(index.hashes), index.hashes[-1]
        try:
            facts = record.read_record(line)
        except record.Broken as error:
            self.problem("index", expected, f"the line is damaged: {error}")
            facts = {}
        if facts.get("n") != expected or facts.get("prev") != previous:
            self.problem("index", expected, "the line does not follow the one before: changed or removed")
        index.hashes.append(record.digest(line))
        chain, kind = facts.get("chain"), facts.get("kind")
        if not isinstance(chain, str) or not places.CHAIN_ID.fullmatch(chain):
            return
        if kind == "begun":
            if index.begun.setdefault(chain, expected) != expected:
                self.problem("index", expected, f"chain {chain} has begun before: the line was added")
        elif kind == "ended":
            self._chain_ended(chain, expected, line, facts)
        elif kind == "pruned":
            self._chain_pruned(chain, expected, line, facts)

    def _chain_ended(self, chain: str, number: int, line: bytes, facts: dict[str, Any]) -> None:
        if self._index.ended.setdefault(chain, (number, facts))[0] != number:
            self.problem("index", number, f"chain {chain} has ended before: the line was added")
        elif "key" not in facts and record.split_signature(line) is None:
            self.note(f"chain {chain}: its end is not signed, since the key could not be used then")
        elif (why := self.signer_problem(line, facts)) is not None:
            self.problem("index", number, f"the end of chain {chain} does not count: {why}")

    def _chain_pruned(self, chain: str, number: int, line: bytes, facts: dict[str, Any]) -> None:
        """Records that are gone by the configuration; who cannot sign cannot say so of others."""
        removal = read_removal(facts)
        why = self.signer_problem(line, facts)
        if why is None:
            why = removal.problem(self.now) if removal is not None else "it does not say how far"
        if why is not None or removal is None:
            self.problem("index", number, f"that records of chain {chain} were removed does not count: {why}")
            return
        self._index.pruned.setdefault(chain, []).append(removal)

    def removed(self, removal: Removal, *, shown: bool) -> None:
        self._report.removed.append({**asdict(removal), "shown": shown})
        self.note(removal.note(shown=shown))

    @property
    def folder(self) -> Path:
        return self._folder

    @property
    def index(self) -> Index:
        return self._index

    def anchored(self, chain: str) -> dict[int, bytes]:
        return self._anchored.get(chain, {})

    def anchor_holds(self, facts: dict[str, Any]) -> None:
        told = facts.get("index")
        if isinstance(told, list) and told and isinstance(told[0], int):
            self._anchored_index = max(self._anchored_index, told[0])


class _ChainCheck:
    """One chain, line after line."""

    def __init__(self, verifier: _Verifier, name: str) -> None:
        self._all = verifier
        self._name = name
        self._path = verifier.folder / name
        self._report = ChainReport(name)
        self._previous = record.BEGINNING
        self._problems = 0
        self._newer = False
        self._latest = ""
        self._anchors = dict(verifier.anchored(name))

    def run(self) -> ChainReport:
        report = self._report
        report.alive = places.is_alive(self._path)
        self._begin_after_pruned()
        paths = places.segments(self._path) if self._path.is_dir() else []
        for path in paths:
            self._segment(path, last=path is paths[-1])
            if self._newer:
                return report
        self._all.read_index()
        end = self._all.index.ended.get(self._name)
        report.ended = end is not None
        report.killed = end is not None and end[1].get("killed") is True
        self._check_end(end[1] if end is not None else None, bool(paths))
        for n, line in sorted(self._anchors.items()):
            told = record.read_record(line).get("at")
            self._problem(n, f"it was kept elsewhere as it was at {told}, and is gone or changed here")
        if self._name not in self._all.index.begun:
            if report.last <= 1 and not self._all.anchored(self._name):
                self._all.note(f"chain {self._name} has no records: its process was killed when it began")
            else:
                self._problem(1, "the index does not name this chain: its line was removed")
        return report

    def _begin_after_pruned(self) -> None:
        report = self._report
        for removal in self._all.index.pruned.get(self._name, ()):
            shown = False
            for n in sorted(self._anchors):
                head = record.read_record(self._anchors[n])
                shown = shown or (n >= removal.up_to and head["at"] < removal.before)
                if not report.last < n <= removal.up_to:
                    continue
                del self._anchors[n]
                if why := removal.problem_with(head, self._all.retention, self._all.now):
                    self._problem(n, why)
            self._all.removed(removal, shown=shown)
            report.last = max(report.last, removal.up_to)
            report.first = report.last + 1
            self._previous = removal.hash

    def _segment(self, path: Path, *, last: bool) -> None:
        expected = self._report.last + 1
        if int(path.stem) != expected and int(path.stem) > expected:
            self._problem(
                expected, f"records {expected} to {int(path.stem) - 1} are gone: a segment was removed"
            )
        try:
            with places.open_regular(path) as file:
                self._lines(path, file, last=last)
        except OSError as error:
            self._problem(expected, f"{path.name} cannot be read: {error.strerror}")

    def _lines(self, path: Path, file: BinaryIO, *, last: bool) -> None:
        noted, offset = Places(), 0
        for line in places.read_lines(file):
            if line.endswith(b"\n"):
                self._line(line[:-1], noted, offset)
            elif len(line) > places.LONGEST:
                self._problem(self._report.last + 1, f"it is damaged: {places.TOO_LONG}")
                return
            elif not (last and self._report.alive):
                self._torn(last, len(line))
            offset += len(line)
            if self._problems >= MOST_PROBLEMS or self._newer:
                return
        if not (last and self._report.alive):
            self._check_places(path, noted, offset)

    def _check_places(self, path: Path, noted: Places, size: int) -> None:
        """What readers were told about a segment must not hide a record from them."""
        right = noted.is_stored(path, size)
        if right is False:
            self._all.note(f"chain {self._name}: the places of {path.name} were wrong and are made again")
        if not right and size >= seek.WORTH:
            noted.store(path, size)
        elif right is False:
            path.with_suffix(seek.SUFFIX).unlink(missing_ok=True)

    def _torn(self, last: bool, size: int) -> None:
        if last:
            self._all.note(f"chain {self._name}: {size} bytes of a record that a killed process began")
        else:
            self._problem(self._report.last + 1, "the segment ends in the middle of a record")

    def _line(self, line: bytes, noted: Places, offset: int) -> None:
        report, expected = self._report, self._report.last + 1
        self._all.count()
        try:
            head = record.read_head(line)
        except record.Broken as error:
            self._problem(expected, f"it is damaged: {error}")
            report.last, self._previous = expected, record.digest(line)
            return
        if head.n != expected:
            self._problem(expected, f"record {head.n} stands in its place: removed or put in another order")
        elif head.prev != self._previous:
            self._problem(max(expected - 1, 1), "it was changed after it was written")
        if head.at < self._latest:
            self._all.note(f"chain {self._name}: the clock went back at record {head.n}, to {head.at}")
        self._latest = head.at
        noted.add(head.at, head.session, offset)
        if (head.kind == "chain") != (expected == 1):
            self._problem(expected, "a chain begins with what wrote it, and says so once: it was changed")
        report.last, self._previous = head.n, record.digest(line)
        if head.kind in ("head", "chain"):
            self._check_head(line, head)
        elif not report.open_since:
            report.open_since = head.at

    def _check_head(self, line: bytes, head: record.Head) -> None:
        facts = record.read_record(line)
        version = facts.get("version")
        if head.kind == "chain" and isinstance(version, int) and version > record.VERSION:
            self._problem(
                head.n, f"a newer version of Dragoman wrote it (format {version}): check it with that"
            )
            self._newer = True
            return
        if facts.get("chain") != self._name:
            self._problem(head.n, f"it is of the chain {facts.get('chain')}")
        if (why := self._all.index_problem(facts)) is not None:
            self._problem(head.n, why)
        if head.kind != "head":
            return
        same = self._anchors.get(head.n) == line
        if same:
            del self._anchors[head.n]
        if (why := self._all.signer_problem(line, facts)) is not None:
            self._problem(head.n, why)
            return
        self._report.signed, self._report.signed_at = head.n, head.at
        if same:
            self._report.anchored, self._report.anchored_at = head.n, head.at
            self._report.open_since = ""
            self._all.anchor_holds(facts)

    def _check_end(self, ended: dict[str, Any] | None, present: bool) -> None:
        report = self._report
        if ended is not None:
            last = ended.get("last")
            if isinstance(last, int) and report.last < last:
                what = "are gone: its end was cut off" if present else "are gone: the chain was removed"
                self._problem(report.last + 1, f"records {report.last + 1} to {last} {what}")
            elif report.last == last and self._previous != ended.get("hash"):
                self._problem(report.last, "it was changed after the chain had ended")
            elif isinstance(last, int) and report.last > last:
                self._problem(last + 1, "it was added after the chain had ended")
        elif not present and self._name in self._all.index.begun:
            self._problem(1, "the chain was removed")
        elif not report.alive and report.last > 1:
            self._all.note(
                f"chain {self._name} has no end: its process was killed, or the end was cut off after record "
                f"{report.signed}, the last that is signed"
            )

    def _problem(self, number: int, text: str) -> None:
        self._problems += 1
        if self._problems <= MOST_PROBLEMS:
            self._all.problem(self._name, number, text)
