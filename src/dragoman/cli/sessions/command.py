"""The commands of `dragoman sessions`."""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dragoman.cli.audit.tell import tell
from dragoman.cli.audit.times import Moment
from dragoman.cli.commands import AS_JSON, SETTINGS, Reporting, WholeLines
from dragoman.cli.entry import complain
from dragoman.cli.settings import load_settings
from dragoman.cli.steering.change import rename, set_
from dragoman.config.errors import ConfigError

if TYPE_CHECKING:
    from dragoman.cli.sessions.export import Format
    from dragoman.cli.sessions.history import History
    from dragoman.cli.sessions.state import View
    from dragoman.config.paths import Paths
    from dragoman.store import FileStore

COLOURS = {
    "working": "green",
    "waiting for permission": "yellow",
    "silent": "yellow",
    "agent dead": "red",
    "not answering": "red",
    "context lost": "red",
    "interrupted": "red",
    "closed": "bright_black",
    "stored": "bright_black",
}


class SessionsGroup(Reporting, WholeLines):
    """Reports errors of all its commands."""


@click.group(cls=SessionsGroup, context_settings=SETTINGS)
def sessions() -> None:
    """List, search, show, attach to, rename, set, export, locate, take over, close and delete sessions.

    Where an ID is wanted, the beginning of one will do, as long as it is unique.
    """


@sessions.command("list")
@click.option("--cwd", metavar="DIR", help="Only sessions in this folder.")
@click.option("-a", "--agent", metavar="NAME", help="Only sessions of this agent.")
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(1),
    metavar="N",
    default=20,
    show_default=True,
    help="List at most N.",
)
@click.option("--all", "show_all", is_flag=True, help="List all sessions.")
@AS_JSON
def list_sessions(cwd: str | None, agent: str | None, limit: int, show_all: bool, as_json: bool) -> None:
    """Show sessions, the latest first."""
    import asyncio

    from dragoman.cli.sessions.find import every, with_store
    from dragoman.cli.sessions.state import look
    from dragoman.cli.sessions.unlisted import unlisted_notice
    from dragoman.upkeep.unlisted import unlisted

    paths, _ = load_settings(quiet=True)
    folder = os.path.abspath(cwd) if cwd is not None else None  # noqa: PTH100 (as it was given, not resolved)

    async def read(store: FileStore) -> tuple[list[View], int]:
        """The sessions and, if no limit cut them off, how many have journals but are not in the directory."""
        records = []
        async for record in every(store, cwd=folder, agent=agent):
            records.append(record)
            if len(records) > limit and not show_all:
                break
        whole = show_all or len(records) <= limit
        left_out = await asyncio.to_thread(unlisted, store.path) if whole else []
        return await look(store, records), len(left_out)

    views, left_out = with_store(paths, read) if _has_any(paths) else ([], 0)
    more = not show_all and len(views) > limit
    views = views if show_all else views[:limit]
    if as_json:
        click.echo(json.dumps([view.as_json() for view in views], indent=2, ensure_ascii=False))
    elif views:
        _print_views(views)
        if more:
            click.echo("There are more: --all shows them, --limit N some.", err=True)
    elif folder or agent:
        click.echo("No sessions match.")
    elif not left_out:
        click.echo("No sessions yet.")
    if left_out:
        complain(unlisted_notice(left_out))


def _print_views(views: list[View]) -> None:
    from dragoman.cli.sessions.state import ago, short_ids
    from dragoman.cli.terminal.screen import one_line
    from dragoman.cli.terminal.table import print_table

    short = short_ids([view.record.id for view in views])
    rows = [
        [
            short[view.record.id],
            view.words,
            ago(view.record.updated_at),
            view.record.agent,
            one_line(view.record.title or "", 40),
            _home(view.record.cwd),
        ]
        for view in views
    ]
    print_table(["ID", "STATE", "UPDATED", "AGENT", "TITLE", "FOLDER"], rows, COLOURS)


def _home(path: str) -> str:
    home = str(Path.home())
    return "~" + path[len(home) :] if path == home or path.startswith(home + "/") else path


@sessions.command()
@click.argument("words", nargs=-1, required=True)
@click.option("-a", "--agent", metavar="NAME", help="Only sessions of this agent.")
@click.option("--cwd", metavar="DIR", help="Only sessions in this folder or below it.")
@click.option("--since", type=Moment(), help="Only what was said since then: 2h, 7d, today, 2026-11-18.")
@click.option("--best", is_flag=True, help="The best match first instead of the newest.")
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(1, 200),
    metavar="N",
    default=20,
    show_default=True,
    help="Show at most N.",
)
@AS_JSON
@click.pass_context
def search(
    ctx: click.Context,
    words: tuple[str, ...],
    agent: str | None,
    cwd: str | None,
    since: str | None,
    best: bool,
    limit: int,
    as_json: bool,
) -> None:
    """Find what was said, by people, agents and tools.

    An argument of several words is a phrase; several arguments must all occur in one message. A word that ends with *
    stands for all words that begin so. Exits with 1 if nothing is found.
    """
    from dragoman.cli.sessions.search import run, words_of
    from dragoman.gateway.ports.search import Wanted
    from dragoman.wire.timestamps import milliseconds

    paths, loaded = load_settings(quiet=True)
    if not loaded.config.sessions.search:
        raise ConfigError("sessions.search is false: there is no index to search in")
    folder = os.path.abspath(cwd) if cwd is not None else None  # noqa: PTH100 (as it was given, not resolved)
    moment = milliseconds(since) if since is not None else None
    ctx.exit(run(paths, Wanted(words_of(words), agent, folder, moment, best, limit), as_json=as_json))


@sessions.command()
@click.argument("id")
@AS_JSON
def show(id: str, as_json: bool) -> None:
    """Show one session: its state, its turns and its last events."""
    from dragoman.cli.sessions.find import find, with_store
    from dragoman.cli.sessions.history import read_history
    from dragoman.cli.sessions.show import as_json as facts
    from dragoman.cli.sessions.show import print_session
    from dragoman.cli.sessions.state import look

    paths, _ = _load(id)

    async def read(store: FileStore) -> tuple[View, History]:
        record = await find(store, id)
        (view,) = await look(store, [record])
        return view, await read_history(store, record.id)

    view, history = with_store(paths, read)
    if as_json:
        click.echo(json.dumps(facts(view, history), indent=2, ensure_ascii=False))
    else:
        print_session(view, history)


@sessions.command()
@click.argument("id")
@click.option(
    "--format", type=click.Choice(["ndjson", "markdown", "md"]), help="[default: by FILE, else ndjson]"
)
@click.option("-o", "--output", metavar="FILE", help="Write to FILE instead of stdout.")
def export(id: str, format: Format | None, output: str | None) -> None:
    """Print a session with every event, or as a transcript for people."""
    from dragoman.cli.sessions.export import export as write
    from dragoman.cli.sessions.find import find, with_store

    paths, _ = _load(id)
    file = Path(output) if output not in (None, "-") else None
    by_name: Format = "markdown" if file is not None and file.suffix in (".md", ".markdown") else "ndjson"

    async def run(store: FileStore) -> None:
        record = await find(store, id)
        tell("session_exported", session=record.id, agent=record.agent, to=output or "-")
        await write(store, record, format or by_name, file)

    with_store(paths, run)


@sessions.command()
@click.argument("id")
def path(id: str) -> None:
    """Print the folder with a session's journal: files to read with less, grep and tail -f."""
    from dragoman.cli.sessions.find import find, with_store
    from dragoman.gateway.ports.store import StoreUnavailable
    from dragoman.store.locks import Folder

    paths, _ = _load(id)

    async def look(store: FileStore) -> str:
        return (await find(store, id)).id

    folder = Folder(paths.state_dir).of(with_store(paths, look))
    if not folder.exists():
        raise StoreUnavailable(
            f"{folder.name} has no journal here yet: only its agent knows what was said in it."
        )
    click.echo(str(folder))


@sessions.command()
@click.argument("id")
def take(id: str) -> None:
    """Take a session over that another machine had open, on a disk that both share.

    Only needed if that machine is gone: as long as it runs, both would write to one session.
    """
    import asyncio

    from dragoman.cli.sessions.find import find
    from dragoman.gateway.ports.store import HeldElsewhere, SessionHeld
    from dragoman.store import FileStore

    paths, _ = _load(id)

    async def run() -> str:
        store = await FileStore.open(paths.database, paths.ensure(paths.runtime_dir))
        try:
            record = await find(store, id)
            lease = await store.acquire(record.id, force=True)
            if isinstance(lease, HeldElsewhere):
                owner = lease.owner
                raise SessionHeld(
                    f"Session {record.id} is open in process {owner.id} on {owner.node}.", lease
                )
            await store.release(record.id, lease.epoch)
            return record.id
        finally:
            await store.close()

    click.echo(f"{asyncio.run(run())} can be used here now")


@sessions.command()
@click.argument("id")
def close(id: str) -> None:
    """End a session that is running; it stays and can be continued."""
    from dragoman.cli.sessions.end import close as end
    from dragoman.cli.sessions.find import find, with_store
    from dragoman.cli.sessions.state import look

    paths, limit = _load(id)

    async def run(store: FileStore) -> View:
        (view,) = await look(store, [await find(store, id)])
        if view.live:
            await end(view, limit)
        return view

    view = with_store(paths, run)
    click.echo(
        f"closed {view.record.id}" if view.live else f"{view.record.id} is not running: nothing to close"
    )


@sessions.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--discard", is_flag=True, help="Remove its worktree too, even if something in it is lost.")
@click.pass_context
def delete(ctx: click.Context, ids: tuple[str, ...], yes: bool, discard: bool) -> None:
    """Delete sessions and their history for good.

    A worktree goes with its session if everything in it is committed and merged; else it stays and is named.
    """
    from dragoman.cli.sessions.end import delete as remove
    from dragoman.cli.sessions.find import find, with_store
    from dragoman.cli.sessions.state import look

    paths, loaded = load_settings(quiet=True)
    _check_any(paths, *ids)

    async def read(store: FileStore) -> list[View]:
        records = {record.id: record for record in [await find(store, id) for id in ids]}
        return await look(store, records.values())

    views = with_store(paths, read)
    if not yes:
        _confirm(ctx, views)
    for view in views:
        stays = remove(paths, loaded.config, view, discard=discard)
        click.echo(f"deleted {view.record.id}")
        if "error" in stays:
            complain(f"its worktree stays: {stays['error']}")
        elif stays:
            complain(
                f"its worktree {stays['name']} stays ({stays['why']}): {stays['folder']}, branch {stays['branch']}; "
                f"`dragoman worktrees discard {stays['name']}` removes both"
            )


def _confirm(ctx: click.Context, views: list[View]) -> None:
    import sys

    from dragoman.cli.terminal.screen import one_line

    if sys.stdin is None or not sys.stdin.isatty():
        raise click.UsageError("without a terminal there is no confirmation: give --yes", ctx)
    for view in views:
        running = f" ({view.words})" if view.live else ""
        click.echo(f"  {view.record.id}  {one_line(view.record.title or '', 60)}{running}", err=True)
    count = "this session" if len(views) == 1 else f"these {len(views)} sessions"
    click.confirm(f"Delete {count} for good?", abort=True, err=True)


@sessions.command()
@click.argument("id")
@click.option("--read-only", is_flag=True, help="Show the session without taking part in it.")
@click.pass_context
def attach(ctx: click.Context, id: str, read_only: bool) -> None:
    """Follow a session in the terminal and take part in it.

    What was said comes first, then what is said now: the same as `dragoman chat -s ID`. Ctrl-C cancels the turn that is
    running, Ctrl-D leaves. Without a terminal it is plain text, and each line of stdin is a prompt.
    """
    from dragoman.cli.chat.command import is_terminal
    from dragoman.cli.sessions.find import find, with_store

    paths, loaded = load_settings(quiet=True)
    _check_any(paths, id)
    if is_terminal():
        from dragoman.cli.chat import run as chat

        found = with_store(paths, partial(find, given=id)).id
        ctx.exit(chat.watch(found, paths) if read_only else chat.attach(found, paths))
    from dragoman.cli.sessions import attach, watch

    ctx.exit(watch.run(id, paths) if read_only else attach.run(id, loaded.config, paths))


def _load(*ids: str) -> tuple[Paths, int]:
    """The paths, and the longest message that another process may send."""
    paths, loaded = load_settings(quiet=True)
    _check_any(paths, *ids)
    return paths, loaded.config.limits.max_message_bytes


def _check_any(paths: Paths, *ids: str) -> None:
    if not _has_any(paths):
        raise ConfigError(f'there is no session "{ids[0]}": there are none yet')


def _has_any(paths: Paths) -> bool:
    if paths.database.exists():
        return True
    from dragoman.cli.compose import find_lost_directory
    from dragoman.gateway.ports.store import StoreUnavailable

    if (lost := find_lost_directory(paths)) is not None:
        raise StoreUnavailable(lost)
    return False


sessions.add_command(rename)
sessions.add_command(set_)
