"""`dragoman config`: show, change, find, start and trust configuration."""

from __future__ import annotations

import json
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import click

from dragoman.cli.audit.tell import changing, tell
from dragoman.cli.commands import AS_JSON, SETTINGS, WholeLines
from dragoman.cli.settings import here, load_settings
from dragoman.config.errors import ConfigError
from dragoman.config.files.edit import set_value, write_file
from dragoman.config.load import flag, parse, read
from dragoman.config.paths import Paths, find_paths
from dragoman.config.root import WORKSPACE_FILE, find_root
from dragoman.config.workspace import Trust


@click.group(cls=WholeLines, context_settings=SETTINGS)
def config() -> None:
    """Show, change, find, create and trust configuration."""


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
@click.argument("key")
@AS_JSON
def get(key: str, as_json: bool) -> None:
    """Print the value of KEY in force, such as serve.port; a secret is masked.

    Texts are printed as they are, everything else as TOML. A key that is not set prints nothing, with exit code 1.
    """
    from dragoman.config.files import toml
    from dragoman.config.show import as_data

    _, loaded = load_settings(quiet=True)
    found: Any = as_data(loaded, everything=True)["config"]
    path = _split(key)
    _check_key(path)
    for part in path:
        found = found.get(part) if isinstance(found, dict) else None
    if as_json:
        click.echo(json.dumps(found, ensure_ascii=False))
    elif found is None:
        raise SystemExit(1)
    else:
        click.echo(found if isinstance(found, str) else toml.value(found))


@config.command("set", context_settings={"ignore_unknown_options": True})
@click.argument("key")
@click.argument("value")
def set_(key: str, value: str) -> None:
    """Set KEY, such as serve.port, in your configuration file; comments and order stay.

    VALUE is TOML (8420, true, ["a", "b"]); anything else is a text. The file is checked before it is replaced.
    """
    path = _split(key)
    paths = find_paths()
    paths.ensure(paths.config_file.parent)
    chosen = _value(path, value)
    with changing(paths.config_file):
        set_value(paths, path, chosen)
    click.echo(f"{key} is set in {paths.config_file}")


@config.command()
@AS_JSON
@click.pass_context
def edit(ctx: click.Context, as_json: bool) -> None:
    """Edit your configuration file with $VISUAL or $EDITOR; it is put in force only if it is sound."""
    from dragoman.cli.policy.edit import edit_configuration
    from dragoman.config.reference import template

    ctx.exit(edit_configuration(template(), as_json=as_json))


def _split(key: str) -> list[str]:
    """The parts of a dotted key, quoted ones as TOML has them."""
    import tomllib

    try:
        data: Any = tomllib.loads(f"{key} = 0")
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f'"{key}" is no key: write it with dots, such as serve.port') from error
    parts = []
    while isinstance(data, dict):
        parts.append(next(iter(data)))
        data = data[parts[-1]]
    return parts


def _check_key(path: list[str]) -> None:
    """Raise `ConfigError` with the nearest name if there is no such key."""
    from dragoman.config.model import Config
    from dragoman.config.schema import keys_at, struct_of, suggest

    for depth in range(len(path)):
        names = keys_at(struct_of(Config), path[:depth])
        if names is not None and path[depth] not in names:
            whole = ".".join(path[: depth + 1])
            raise ConfigError(f'there is no key "{whole}"{suggest(path[depth], names)}')


def _value(path: list[str], text: str) -> Any:
    """`text` as TOML if that fits the key, else as a text; raises `ConfigError` if neither does."""
    import tomllib

    candidates: list[Any] = [text]
    with suppress(tomllib.TOMLDecodeError):
        candidates.insert(0, tomllib.loads(f"v = {text}")["v"])
    failure: ConfigError | None = None
    for candidate in candidates:
        try:
            load_settings([flag("", tuple(path), candidate)], quiet=True)
        except ConfigError as error:
            failure = failure or error
        else:
            return candidate
    assert failure is not None
    raise failure


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
        tell("trust_removed", path=str(file))
        with changing(paths.trust_file):
            found = Trust(paths).revoke(file)
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
