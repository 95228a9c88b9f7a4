"""Checks worktrees: folders that are gone, folders and branches without a record, and their size."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from dragoman.cli.doctor.finding import Context, Finding, counted, sized
from dragoman.gateway.ports.worktrees import Worktree
from dragoman.worktrees.names import BRANCHES
from dragoman.worktrees.records import Records
from dragoman.worktrees.status import disk_use

PATIENCE = 10.0


def check(context: Context) -> Iterator[Finding]:
    from dragoman.cli.worktrees.opening import open_engine

    folder = context.paths.state_dir / "worktrees"
    if not folder.is_dir():
        yield Finding("ok", "worktrees", "none")
        return
    with open_engine(context.loaded.config, context.paths) as engine:
        found = engine.all()
    troubles = [trouble for one in found for trouble in _worktree(context, one)]
    troubles += [
        Finding(
            "warning", f"folder {orphan.name}", f"{orphan} belongs to no known worktree",
            f"look at what is in it, then remove it: `rm -r {orphan}`",
        )
        for orphan in Records(folder).orphans()
    ]  # fmt: skip
    troubles += _branches(found, folder)
    yield from troubles
    size = sized(disk_use(str(folder)))
    yield Finding("ok", "worktrees", f"{counted(len(found), 'worktree')}, {size}")


def _worktree(context: Context, one: Worktree) -> Iterator[Finding]:
    about = f"worktree {one.name}"
    if one.unknown:
        fix = f"put {one.repository} back, or `dragoman worktrees discard {one.name}`"
        yield Finding("warning", about, one.unknown, fix)
    elif one.state == "missing":
        again = f"; the session {one.session} makes it again when it goes on" if one.session else ""
        detail = f"its folder {one.folder} is gone, its branch {one.branch} is still there"
        if one.loses:
            fix = f"merge the branch with git, or `dragoman worktrees discard {one.name}`{again}"
            yield Finding("warning", about, f"{detail}, with {one.loses}", fix)
            return
        fix = f"`dragoman worktrees discard {one.name}` removes what is left: nothing is lost{again}"
        yield Finding("warning", about, detail, fix, partial(_discard, context, one))
    elif one.state == "unfinished":
        yield Finding("warning", about, "a crash left it unfinished", "`dragoman worktrees clean` removes it")


def _discard(context: Context, one: Worktree) -> str:
    from dragoman.cli.audit.tell import command_audit
    from dragoman.cli.worktrees.opening import open_engine

    with command_audit() as acting, open_engine(context.loaded.config, context.paths, acting) as engine:
        engine.discard(one.name, one.repository)  # refuses if something would be lost by now
    return f"discarded what was left of it, with the branch {one.branch}"


def _branches(found: list[Worktree], folder: Path) -> Iterator[Finding]:
    """Branches of ours that no worktree has."""
    known = {(record.repository, record.branch) for record in Records(folder).all()}
    for repository in sorted({one.repository for one in found if not one.unknown}):
        command = [
            "git",
            "-C",
            repository,
            "for-each-ref",
            "--format=%(refname:short)",
            f"refs/heads/{BRANCHES}",
        ]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True)
        except (OSError, subprocess.SubprocessError):
            continue
        for branch in done.stdout.split():
            if (repository, branch) not in known:
                yield Finding(
                    "warning", f"branch {branch}", f"no worktree of {repository} has it any more",
                    f"`git -C {repository} branch -d {branch}` removes it if it is merged",
                )  # fmt: skip
