"""`dragoman worktrees`: list, merge, rebase, keep, discard and clean."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from dragoman.cli.commands import AS_JSON, SETTINGS, Reporting, WholeLines
from dragoman.cli.settings import here, load_settings
from dragoman.cli.terminal.progress import waiting
from dragoman.terminal import escape

if TYPE_CHECKING:
    from dragoman.config.paths import Paths
    from dragoman.worktrees.engine import Engine

WHERE = click.option(
    "-r",
    "--repository",
    metavar="DIR",
    help="The repository, where a name is not enough. [default: this one]",
)


class WorktreesGroup(Reporting, WholeLines):
    """Reports errors of worktrees too."""

    def invoke(self, ctx: click.Context) -> Any:
        from dragoman.cli.entry import complain
        from dragoman.gateway.ports.worktrees import WorktreeError

        try:
            return super().invoke(ctx)
        except WorktreeError as error:
            complain(escape(str(error)))
            ctx.exit(1)


@click.group(cls=WorktreesGroup, context_settings=SETTINGS)
def worktrees() -> None:
    """List, merge, rebase, keep, discard and clean the worktrees of sessions.

    `dragoman exec --worktree` and `dragoman acp --worktree` make them.
    """


@worktrees.command("list")
@click.option("-r", "--repository", metavar="DIR", help="Only those of this repository.")
@AS_JSON
def list_worktrees(repository: str | None, as_json: bool) -> None:
    """Show worktrees, what would be lost with them, and how much disk they use."""
    import msgspec

    from dragoman.cli.terminal.table import print_table

    with _open() as (_, engine), waiting("looking at worktrees"):
        found = engine.all(_root(repository) if repository is not None else None)
    if as_json:
        click.echo(json.dumps(msgspec.to_builtins(found), indent=2, ensure_ascii=False))
    elif not found:
        click.echo("No worktrees.")
    else:
        rows = [
            [
                one.name,
                "kept" if one.kept and one.state == "ready" else one.state,
                one.loses or "nothing",
                _size(one.bytes),
                one.session or "",
                one.repository,
                one.folder,
            ]
            for one in found
        ]
        print_table(["NAME", "STATE", "ONLY HERE", "DISK", "SESSION", "REPOSITORY", "FOLDER"], rows, {})


@worktrees.command()
@click.argument("name")
@click.option(
    "-m", "--message", metavar="TEXT", help="Commit what is not committed first, with this message."
)
@click.option(
    "--into", metavar="BRANCH", help="The branch that is checked out, if it is not the one NAME began on."
)
@click.option("--hooks", is_flag=True, help="Let git run the repository's hooks, filters and merge drivers.")
@WHERE
@AS_JSON
def merge(
    name: str, message: str | None, into: str | None, hooks: bool, repository: str | None, as_json: bool
) -> None:
    """Merge a worktree's branch into the one that its repository has checked out.

    Hooks, filters and merge drivers of the repository do not run without --hooks. A conflict changes nothing.
    """
    with _recording() as (_, engine):
        done = engine.merge(name, _root(repository), message, into, hooks=hooks)
    _tell(done, as_json, "merged into")
    if not as_json:
        stays = f"the worktree and its branch stay: `dragoman worktrees discard {done.name}` removes them"
        click.echo(escape(stays), err=True)


@worktrees.command()
@click.argument("name")
@WHERE
@AS_JSON
def rebase(name: str, repository: str | None, as_json: bool) -> None:
    """Move a worktree's commits onto the branch that it began on. A conflict changes nothing."""
    with _recording() as (_, engine):
        done = engine.rebase(name, _root(repository))
    _tell(done, as_json, "rebased onto")


@worktrees.command()
@click.argument("name")
@WHERE
@AS_JSON
def keep(name: str, repository: str | None, as_json: bool) -> None:
    """Keep a worktree, whatever becomes of its session; only `discard` removes it."""
    with _open() as (_, engine):
        found = engine.keep(name, _root(repository))
    _show(found, as_json, f"kept {found.name}: {found.folder}, branch {found.branch}")


@worktrees.command()
@click.argument("name")
@click.option("-y", "--yes", is_flag=True, help="Do not ask, even if something is lost.")
@WHERE
@AS_JSON
@click.pass_context
def discard(ctx: click.Context, name: str, yes: bool, repository: str | None, as_json: bool) -> None:
    """Remove a worktree's folder and branch; asks if something would be lost."""
    from dragoman.gateway.ports.worktrees import WorktreeError

    root = _root(repository)
    with _open() as (_, engine):
        found = engine.find(name, root)
    if found.loses and not yes:
        if sys.stdin is None or not sys.stdin.isatty():
            raise WorktreeError(f"{name} has {found.loses}: --yes discards it all the same", "would_lose")
        click.confirm(f"{name} has {found.loses}. Discard it for good?", abort=True, err=True)
    with _recording() as (_, engine):
        found = engine.discard(name, root, force=True)
    _show(found, as_json, f"discarded {found.name} and the branch {found.branch}")


@worktrees.command()
@AS_JSON
def clean(as_json: bool) -> None:
    """Remove worktrees that hold nothing of their own, without a running session, and what crashes left."""
    import msgspec

    with _recording() as (paths, engine):
        live, stored = _sessions(paths)
        done = engine.clean(live, stored=stored)
    if as_json:
        click.echo(json.dumps(msgspec.to_builtins(done), indent=2, ensure_ascii=False))
        return
    for name in done.removed:
        click.echo(f"removed {name}")
    for name, why in done.left.items():
        click.echo(f"left {escape(name)}: {escape(why)}", err=True)
    if not done.removed:
        click.echo("Nothing to remove.", err=True)


@contextmanager
def _open() -> Iterator[tuple[Paths, Engine]]:
    from dragoman.cli.worktrees.opening import open_engine

    paths, loaded = load_settings(quiet=True)
    with open_engine(loaded.config, paths) as engine:
        yield paths, engine


@contextmanager
def _recording() -> Iterator[tuple[Paths, Engine]]:
    """An engine whose acts are in the audit."""
    from dragoman.cli.audit.tell import command_audit
    from dragoman.cli.worktrees.opening import open_engine

    paths, loaded = load_settings(quiet=True)
    with command_audit() as acting, open_engine(loaded.config, paths, acting) as engine:
        yield paths, engine


def _root(given: str | None) -> str | None:
    from pathlib import Path

    from dragoman.config.root import find_root

    if given is not None:
        return str(find_root(Path(given).absolute()))
    found = here()
    return str(found) if found is not None else None


def _sessions(paths: Paths) -> tuple[list[str], list[str]]:
    """Sessions that a process has open, and all that are stored."""
    if not paths.database.exists():
        return [], []
    from dragoman.cli.sessions.find import every, with_store
    from dragoman.store import FileStore

    async def read(store: FileStore) -> tuple[list[str], list[str]]:
        records = [record async for record in every(store)]
        return list(await store.holders(records)), [record.id for record in records]

    return with_store(paths, read)


def _tell(done: Any, as_json: bool, what: str) -> None:
    count = len(done.files)
    files = f"{count} file{'s' if count != 1 else ''} changed" if count else "nothing to do"
    _show(done, as_json, f"{done.name} {what} {done.into}: {files}, {done.commit[:12]}")


def _show(found: Any, as_json: bool, text: str) -> None:
    import msgspec

    click.echo(
        json.dumps(msgspec.to_builtins(found), indent=2, ensure_ascii=False) if as_json else escape(text)
    )


def _size(count: int) -> str:
    amount = float(count)
    for unit in ("B", "KB", "MB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}"
        amount /= 1024
    return f"{amount:.1f} GB"
