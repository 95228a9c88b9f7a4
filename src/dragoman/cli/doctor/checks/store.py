"""Checks the stored sessions and the search index."""

from __future__ import annotations

import functools
import os
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path

from dragoman.cli.doctor.finding import Context, Finding, Level, counted, sized
from dragoman.search.histories import KnownRow
from dragoman.search.index import Source
from dragoman.worktrees.status import disk_use

JOURNALS = "journal"
LEVELS: Mapping[str, Level] = {"ok": "ok", "warning": "warning", "error": "error"}


def check(context: Context) -> Iterator[Finding]:
    from dragoman.upkeep import check as upkeep

    for found in upkeep.check(context.paths.database):
        finding, done = (found.finding, found) if isinstance(found, upkeep.Fix) else (found, None)
        if finding.about == "search":
            continue  # `check_search`
        repair = functools.partial(_repair, done) if done is not None else None
        yield Finding(LEVELS[finding.level], finding.about, finding.detail, finding.advice, repair)
    folder = context.paths.state_dir / JOURNALS
    if folder.is_dir():
        yield Finding(
            "ok", "size", f"{sized(disk_use(str(folder)))} of journals, {_database(context.paths.database)}"
        )


def _repair(fix: object) -> str | None:
    from dragoman.upkeep.check import Fix

    assert isinstance(fix, Fix)
    fix.do()
    return fix.done or None


def _database(path: Path) -> str:
    files = (path, *(path.with_name(f"{path.name}-{end}") for end in ("wal", "shm")))
    return f"{sized(sum(file.stat().st_size for file in files if file.exists()))} of directory"


def _is_behind(source: Source, known: KnownRow | None) -> bool:
    return source.last_seq > known[5] if known is not None else source.last_seq >= source.first_seq


def check_search(context: Context) -> Iterator[Finding]:
    from contextlib import closing

    from dragoman.gateway.ports.store import StoreError
    from dragoman.search import feed, index
    from dragoman.search.lookup import read_all

    state = context.paths.state_dir
    if not context.loaded.config.sessions.search:
        yield Finding("ok", "search", "turned off (sessions.search = false)")
        return
    file = state / index.FILE
    if (trouble := index.check(state)) is not None:

        def again() -> str:
            index.remove(state)
            read_all(state)
            return "made again from the journals"

        yield Finding(
            "warning",
            "search",
            f"{file} {trouble}",
            "`dragoman doctor --fix` makes it again from the journals",
            again,
        )
        return
    if not file.exists():
        yield Finding("ok", "search", "no index yet: the first search makes it")
        return
    if not os.access(file, os.W_OK):
        yield Finding(
            "warning", "search", f"{file} cannot be written", f"`chmod u+w {file}`: it is behind until then"
        )
        return
    try:
        journals, _ = feed.sources(state)
        with closing(index.open_index(state)) as opened:
            known = opened.known()
    except StoreError:
        yield Finding(
            "warning", "search", "not checked, since the store cannot be read", "mend the store first"
        )
        return
    except (sqlite3.Error, index.Unusable, OSError) as error:
        yield Finding(
            "warning", "search", f"{file} cannot be opened: {error}", f"move {file} away: it is made again"
        )
        return
    behind = sum(_is_behind(source, known.get(source.id)) for source in journals)
    step = (
        "in step with the journals"
        if not behind
        else f"{counted(behind, 'session')} behind: the next search reads them"
    )
    yield Finding("ok", "search", f"{sized(file.stat().st_size)}, {step}")
