"""`dragoman backup` and `dragoman restore`: the whole state folder in one file, and back."""

from __future__ import annotations

from pathlib import Path

import click

from dragoman.cli.commands import SETTINGS, Reporting
from dragoman.cli.entry import complain
from dragoman.cli.settings import load_settings
from dragoman.cli.terminal.progress import Progress


@click.command(cls=Reporting, context_settings=SETTINGS)
@click.argument("file", type=click.Path(path_type=Path))
def backup(file: Path) -> None:
    """Write the state folder (sessions, tokens, logins, logs) to FILE, a tar archive; FILE.tar.gz is compressed.

    Gateways may go on meanwhile. Your configuration file is not in it, unless DRAGOMAN_HOME is set: copy that too. FILE
    holds whole conversations and secrets: keep it as safe as the folder itself.
    """
    from dragoman.upkeep import conversion
    from dragoman.upkeep.archive import back_up
    from dragoman.upkeep.counts import counted, size

    paths, _ = load_settings(quiet=True)
    if conversion.is_needed(paths.database):
        conversion.convert(paths.database, complain)
    with Progress() as progress:
        manifest = back_up(paths.state_dir, file.absolute(), progress)
    what = f"{counted(manifest.sessions, 'session')}, {counted(len(manifest.files), 'file')}"
    click.echo(f"{file}: {what}, {size(file.stat().st_size)}, read back and checked")
    if paths.config_file.exists() and not paths.config_file.is_relative_to(paths.state_dir):
        click.echo(f"not in it: your configuration file, {paths.config_file}")
    _warn(paths.database)


def _warn(database: Path) -> None:
    """Report the sessions that are damaged in the store, and so in the back-up."""
    from dragoman.gateway.ports.store import StoreError
    from dragoman.upkeep.check import check_sessions

    with Progress() as progress:
        try:
            found = list(check_sessions(database, progress))
        except (StoreError, OSError) as error:
            complain(f"the sessions could not be checked: {error}")
            return
    for finding in found:
        complain(f"warning: {finding.about}: {finding.detail}; `dragoman doctor` says more")


@click.command(cls=Reporting, context_settings=SETTINGS)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--replace", is_flag=True, help="Move the present contents of the state folder aside first.")
def restore(file: Path, replace: bool) -> None:
    """Put the state folder back as it was when FILE was written by `dragoman backup`.

    No Dragoman process may run. Clients that saw later events than FILE has are told so when they come back.
    """
    from dragoman.upkeep.counts import counted
    from dragoman.upkeep.restore import restore as put_back

    paths, _ = load_settings(quiet=True)
    with Progress() as progress:
        manifest, before = put_back(file.absolute(), paths.state_dir, progress, replace=replace)
    click.echo(f"restored {counted(manifest.sessions, 'session')} of {manifest.created} to {paths.state_dir}")
    if before is not None:
        click.echo(f"what was there before is in {before}")
