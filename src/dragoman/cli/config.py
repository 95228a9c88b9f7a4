"""`dragoman config`: show, find, start and trust configuration."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import click

from dragoman.cli.audit.tell import changing, tell
from dragoman.cli.commands import AS_JSON, SETTINGS
from dragoman.cli.settings import here, load_settings
from dragoman.config.errors import ConfigError
from dragoman.config.files.edit import write_file
from dragoman.config.load import parse, read
from dragoman.config.paths import Paths, find_paths
from dragoman.config.root import WORKSPACE_FILE, find_root
from dragoman.config.workspace import Trust


@click.group(context_settings=SETTINGS)
def config() -> None:
    """Show, find, create and trust configuration."""


@config.command()
@click.option("--all", "everything", is_flag=True, help="Also show known agents that are not configured.")
@AS_JSON
def show(everything: bool, as_json: bool) -> None:
    """Show the resolved configuration and where each value comes from; secrets are masked."""
    from dragoman.config.show import as_data, as_toml

    _, loaded = load_settings()
    if as_json:
        click.echo(json.dumps(as_data(loaded, everything), indent=2, ensure_ascii=False))
    else:
        click.echo(as_toml(loaded, everything), nl=False)


@config.command()
@click.argument("name", required=False)
@click.option("--all", "everything", is_flag=True, help="Show all paths.")
@AS_JSON
def path(name: str | None, everything: bool, as_json: bool) -> None:
    """Print the path of your configuration file, or of NAME: state, database, socket, ..."""
    places = _places(find_paths())
    if as_json:
        click.echo(json.dumps(places, indent=2))
    elif everything:
        for label, place in places.items():
            click.echo(f"{label:<10} {place}")
    elif (name or "config") in places:
        click.echo(places[name or "config"])
    else:
        from dragoman.config.schema import suggest

        raise ConfigError(f'there is no path named "{name}"{suggest(str(name), places)}')


def _places(paths: Paths) -> dict[str, str]:
    workspace = here()
    places = {
        "config": paths.config_file,
        "workspace": workspace / WORKSPACE_FILE if workspace is not None else WORKSPACE_FILE,
        "state": paths.state_dir,
        "database": paths.database,
        "audit": paths.audit_dir,
        "logs": paths.log_dir,
        "runtime": paths.runtime_dir,
        "socket": paths.socket,
        "token": paths.token_file,
        "cache": paths.cache_dir,
    }
    return {label: str(place) for label, place in places.items()}


@config.command()
@click.option("--force", is_flag=True, help="Replace an existing file.")
def init(force: bool) -> None:
    """Write a configuration file with every key in it, commented out."""
    from dragoman.config.reference import template

    paths = find_paths()
    if paths.config_file.exists() and not force:
        raise ConfigError(f"{paths.config_file} exists already (--force replaces it)")
    with changing(paths.config_file):
        write_file(paths, template())
    click.echo(f"wrote {paths.config_file}")


@config.command()
@click.argument("directory", type=click.Path(path_type=Path, exists=True, file_okay=False), default=".")
@click.option("--remove", is_flag=True, help="Revoke the trust.")
def trust(directory: Path, remove: bool) -> None:
    """Let this workspace's .dragoman/config.toml name commands to run, until the file changes."""
    paths = find_paths()
    file = find_root(directory.absolute()) / WORKSPACE_FILE
    if remove:
        with changing(paths.trust_file):
            found = Trust(paths).revoke(file)
        tell("trust_removed", path=str(file))
        click.echo(f"{file} is no longer trusted" if found else f"{file} was not trusted")
        return
    content = read(file)
    if content is None:
        raise ConfigError(f"there is no {file}")
    named = list(parse(file, content))
    tell("trust_given", path=str(file), sha256=sha256(content).hexdigest())
    with changing(paths.trust_file):
        Trust(paths).grant(file, content)
    click.echo(f"{file} is trusted" + (f"; it sets {', '.join(named)}" if named else ""))
