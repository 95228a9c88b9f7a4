"""`dragoman cancel`, `sessions rename` and `sessions set`: change a session, whichever process has it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

import click

from dragoman.cli.commands import SETTINGS, Reporting
from dragoman.cli.settings import load_settings
from dragoman.config.errors import ConfigError

if TYPE_CHECKING:
    from dragoman.cli.sessions.state import View
    from dragoman.client import Session

T = TypeVar("T")
PATIENCE = 60.0
"""Seconds for the process that has the session; it may have to start an agent."""


@click.command(cls=Reporting, context_settings=SETTINGS)
@click.argument("id")
def cancel(id: str) -> None:
    """Cancel the running turn of a session, whichever client began it."""
    from dragoman.gateway.ownership.entries import RUNNING_STATES

    view = find_view(id)
    if view.state not in RUNNING_STATES:
        click.echo(f"no turn is running in {view.record.id} ({view.words})", err=True)
        return

    async def work(session: Session) -> None:
        from dragoman.client import TurnEnded

        session.cancel()
        async for event in session.events():
            if isinstance(event, TurnEnded):
                return

    change(view, work)
    click.echo(f"cancelled the turn of {view.record.id}")


@click.command()
@click.argument("id")
@click.argument("title")
def rename(id: str, title: str) -> None:
    """Give a session a title, which its agent does not change any more."""
    view = find_view(id)

    async def work(session: Session) -> None:
        await session.rename(title)

    change(view, work)
    click.echo(f"{view.record.id} is called {title}")


@click.command("set")
@click.argument("id")
@click.argument("settings", nargs=-1, required=True, metavar="NAME=VALUE...")
def set_(id: str, settings: tuple[str, ...]) -> None:
    """Set options of a session, such as mode=plan or model=opus: whatever its agent offers."""
    pairs = [setting.partition("=") for setting in settings]
    for setting, (name, equals, _) in zip(settings, pairs, strict=True):
        if not name or not equals:
            raise click.UsageError(f'expected NAME=VALUE, not "{setting}"')
    view = find_view(id)

    async def work(session: Session) -> None:
        from dragoman.cli.steering.options import set_options

        await set_options(session, ((name, value) for name, _, value in pairs))

    change(view, work)
    click.echo(f"{view.record.id}: {', '.join(settings)}")


def find_view(id: str) -> View:
    """The session that `id` begins, with its present state."""
    from dragoman.cli.sessions.find import find, with_store
    from dragoman.cli.sessions.state import look
    from dragoman.store import FileStore

    paths, _ = load_settings(quiet=True)

    async def read(store: FileStore) -> View:
        record = await find(store, id)
        return (await look(store, [record]))[0]

    return with_store(paths, read)


def change(view: View, work: Callable[[Session], Awaitable[T]]) -> T:
    """Run `work` on the session over a gateway: that of `serve` if one runs, else one of our own."""
    from dragoman.client import DragomanError, connect

    async def run() -> T:
        async with asyncio.timeout(PATIENCE), connect() as gateway:
            return await work(await gateway.resume(view.record.id, view.record.cwd, watch=True))

    try:
        return asyncio.run(run())
    except TimeoutError:
        raise ConfigError(
            f"the process that has {view.record.id} did not answer within {PATIENCE:g} s: `dragoman ps` shows it"
        ) from None
    except DragomanError as error:
        raise ConfigError(str(error)) from error
