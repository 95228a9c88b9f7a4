"""Checks checkpoints: those of sessions or projects that are gone, and their size."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from dragoman.cli.doctor.finding import Context, Finding, counted, sized
from dragoman.worktrees.status import disk_use

FOLDER = "checkpoints"


def check(context: Context) -> Iterator[Finding]:
    from dragoman.checkpoints.git import find_git
    from dragoman.gateway.ports.store import StoreError

    folder = context.paths.state_dir / FOLDER
    if find_git() is None:
        yield Finding(
            "warning", "git", "there is no program git, so no checkpoints and no worktrees", "install git"
        )
    if not folder.is_dir():
        yield Finding("ok", FOLDER, "none")
        return
    projects = [project for project in sorted(folder.iterdir()) if (project / "HEAD").is_file()]
    recorded = {ref.name for project in projects for ref in (project / "refs" / "sessions").glob("dgm_*")}
    try:
        gone = sorted(recorded - _stored(context.paths.database))
    except StoreError:
        gone = []  # the store's check says why
    if gone:
        yield Finding(
            "warning", "sessions", f"{counted(len(gone), 'session')} that are deleted still have checkpoints",
            "`dragoman doctor --fix` removes them", partial(_delete, context, gone),
        )  # fmt: skip
    for project in projects:
        root = _root(project)
        if root is not None and not root.exists():
            yield Finding(
                "ok", str(root), f"this project is gone; {sized(disk_use(str(project)))} of checkpoints stay until its "
                "sessions are deleted",
            )  # fmt: skip
    size = sized(disk_use(str(folder)))
    yield Finding(
        "ok", FOLDER, f"{counted(len(recorded), 'session')} in {counted(len(projects), 'project')}, {size}"
    )


def _stored(database: Path) -> set[str]:
    """All sessions that the store knows, by directory or by journal."""
    from dragoman.search.feed import sources
    from dragoman.store.locks import Folder

    journals, _ = sources(database.parent)
    return {source.id for source in journals} | set(Folder(database.parent).sessions())


def _root(project: Path) -> Path | None:
    try:
        return Path((project / "root").read_text(errors="surrogateescape"))
    except OSError:
        return None


def _delete(context: Context, sessions: list[str]) -> str:
    from dragoman.checkpoints.engine import Engine

    engine = Engine(context.paths.state_dir / FOLDER, context.loaded.config.checkpoints)
    still = _stored(context.paths.database)
    gone = [session for session in sessions if session not in still]
    for session in gone:
        engine.delete(session)
    return f"removed the checkpoints of {counted(len(gone), 'session')}"
