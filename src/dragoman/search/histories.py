"""Sessions that only an agent's own history has: transcripts of Claude Code, rollouts of Codex.

Read where the agents keep them by default, or where `CLAUDE_CONFIG_DIR` and `CODEX_HOME` say. Nothing is started for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct

from dragoman.agents.claude.history import History
from dragoman.agents.codex.rollouts import Rollouts
from dragoman.search.index import Source
from dragoman.wire.json_types import JsonObject
from dragoman.wire.timestamps import milliseconds

NEWEST = 200
"""Sessions of each agent that are searched: the newest ones, as in its list."""
LARGEST = 64 * 1024 * 1024
"""Bytes of a transcript that is read; a larger one is left out."""
_ID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?=\.jsonl$)")

Dated: TypeAlias = tuple[str, JsonObject]
KnownRow: TypeAlias = tuple[str, str, str | None, str, int, int]


class _Reader(Struct, frozen=True):
    files: Callable[[], Iterable[Path]]
    info: Callable[[Path], JsonObject | None]
    """Folder and title of a session; None for a file without a conversation."""
    updates: Callable[[Path], Iterable[Dated]]


class Histories:
    def __init__(self, environ: Mapping[str, str]) -> None:
        claude, codex = History(environ), Rollouts(environ)
        self._readers = {
            "claude": _Reader(claude.transcripts, claude.info, claude.dated_updates),
            "codex": _Reader(codex.files, codex.info, codex.updates),
        }
        self._files: dict[str, Path] = {}

    def sources(self, own: set[tuple[str, str]], known: Mapping[str, KnownRow]) -> list[Source]:
        """The sessions that are in no journal, oldest first; `own` are agents and their ids for sessions of ours."""
        ids = {agent_id for _, agent_id in own}
        found = []
        for agent, reader in self._readers.items():
            for changed, path in self._newest(reader):
                match = _ID.search(path.name)
                if match is None or match[0] in ids:
                    continue
                self._files[match[0]] = path
                row = known.get(match[0])
                if row is not None and row[5] == changed:
                    found.append(Source(match[0], row[0], row[1], row[2], "history", row[4], changed))
                elif (told := reader.info(path)) is not None:
                    title = told.get("title")
                    named = title if isinstance(title, str) else None
                    found.append(Source(match[0], agent, str(told.get("cwd")), named, "history", 1, changed))
        return found

    def updates(self, source: Source) -> Iterator[tuple[int, JsonObject]]:
        """The conversation with times in milliseconds; one without a time has that of the file's last change."""
        path = self._files[source.id]
        for stamp, update in self._readers[source.agent].updates(path):
            yield milliseconds(stamp) or source.last_seq, update

    def _newest(self, reader: _Reader) -> list[tuple[int, Path]]:
        dated = []
        for path in reader.files():
            try:
                facts = path.stat()
            except OSError:
                continue  # removed meanwhile
            if facts.st_size <= LARGEST:
                dated.append((facts.st_mtime_ns // 1_000_000, path))
        return sorted(dated)[-NEWEST:]
