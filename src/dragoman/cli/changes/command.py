"""The command `dragoman changes`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from dragoman.cli.commands import AS_JSON, SETTINGS, Reporting
from dragoman.cli.settings import here, load_settings
from dragoman.config.errors import ConfigError

if TYPE_CHECKING:
    from dragoman.checkpoints.engine import Engine
    from dragoman.config.paths import Paths


class Checked(Reporting):
    """Reports errors of checkpoints too."""

    def invoke(self, ctx: click.Context) -> object:
        from dragoman.cli.entry import complain
        from dragoman.gateway.ports.checkpoints import CheckpointError

        try:
            return super().invoke(ctx)
        except CheckpointError as error:
            complain(str(error))
            ctx.exit(1)


@click.command(cls=Checked, context_settings=SETTINGS)
@click.argument("id", required=False)
@click.option("--turn", type=click.IntRange(min=1), metavar="N", help="Only what turn N changed.")
@click.option("--turns", is_flag=True, help="List the turns with their numbers.")
@click.option(
    "--uncommitted", is_flag=True, help="What differs from the project's last commit, by the session or not."
)
@click.option("--stat", is_flag=True, help="Only the files and how many lines changed.")
@AS_JSON
def changes(
    id: str | None, turn: int | None, turns: bool, uncommitted: bool, stat: bool, as_json: bool
) -> None:
    """Show what a session changed in its project, by edits or commands.

    Without an ID: the session that worked last in this project. The output is a patch that `git apply` takes; changes
    that are not the session's alone are marked as shared.
    """
    from dragoman.cli.changes import show

    if sum((turns, stat, as_json)) > 1:
        raise click.UsageError("choose one of --turns, --stat and --json")
    if uncommitted:
        if turns or turn is not None:
            raise click.UsageError("--uncommitted is about the whole project: leave out --turn and --turns")
        _show_uncommitted(id, stat=stat, as_json=as_json)
        return
    paths, engine = open_engine()
    session = resolve(paths, engine, id)
    if turns:
        show.print_turns(engine.checkpoints(session))
    elif as_json:
        show.print_json(engine.changes(session, turn))
    elif stat:
        show.print_stat(engine.changes(session, turn))
    else:
        show.print_patch(engine.patch(session, turn), engine.changes(session, turn))


def _show_uncommitted(given: str | None, *, stat: bool, as_json: bool) -> None:
    from dragoman.cli.changes import show
    from dragoman.commits.engine import Engine

    paths, loaded = load_settings(quiet=True)
    engine, root = Engine(paths.state_dir, loaded.config.checkpoints), project_of(paths, given)
    if as_json:
        show.print_json(engine.uncommitted(root))
    elif stat:
        show.print_stat(engine.uncommitted(root))
    else:
        show.print_patch(engine.patch(root), engine.uncommitted(root))


def project_of(paths: Paths, given: str | None) -> str:
    """The folder of a session's project; without an id, the one around the current folder."""
    from pathlib import Path

    from dragoman.cli.sessions.find import find, with_store
    from dragoman.config.root import find_root

    if given is not None:
        return str(find_root(Path(with_store(paths, lambda store: find(store, given)).cwd)))
    root = here()
    if root is None:
        raise ConfigError("the current folder does not exist any more: name a session")
    return str(root)


def open_engine() -> tuple[Paths, Engine]:
    from dragoman.checkpoints.engine import Engine

    paths, loaded = load_settings(quiet=True)
    return paths, Engine(paths.state_dir / "checkpoints", loaded.config.checkpoints)


def resolve(paths: Paths, engine: Engine, given: str | None) -> str:
    """The id of the session that is meant."""
    from dragoman.cli.sessions.find import find, with_store

    if given is not None:
        return with_store(paths, lambda store: find(store, given)).id
    root = here()
    latest = engine.latest(str(root)) if root is not None else None
    if latest is None:
        raise ConfigError(
            "no session has checkpoints of this project: name one (`dragoman sessions list` shows them)"
        )
    return latest
