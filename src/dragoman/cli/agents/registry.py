"""`dragoman agents search | install | update | uninstall | outdated | refresh`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

import click
import msgspec

from dragoman.agents.known import KNOWN
from dragoman.cli.audit.tell import BY, command_audit
from dragoman.cli.commands import AS_JSON
from dragoman.cli.entry import complain
from dragoman.cli.settings import load_settings
from dragoman.cli.terminal.progress import Progress
from dragoman.cli.terminal.table import print_table
from dragoman.config.errors import ConfigError
from dragoman.config.files.installed import ORIGIN
from dragoman.config.load import Loaded
from dragoman.config.paths import Paths
from dragoman.terminal import style

if TYPE_CHECKING:
    from dragoman.registry.catalog import Offer
    from dragoman.registry.install import Done, Installer, Wish

FROM = {"binary": "program", "npm": "npm", "uv": "uv"}
COLOURS = {"yes": "green", "no": "bright_black", "unpinned": "yellow"}


class Installing(click.Command):
    """Reports a failure of a registry or an installation as one sentence, with exit code 1."""

    def invoke(self, ctx: click.Context) -> Any:
        from dragoman.gateway.ports.acts import NotRecorded
        from dragoman.registry.errors import RegistryError

        try:
            return super().invoke(ctx)
        except (RegistryError, NotRecorded) as error:
            complain(str(error))
            ctx.exit(1)


@contextmanager
def installer() -> Iterator[tuple[Installer, Paths, Loaded]]:
    """The installer of a command, which shows its progress on a terminal and is recorded in the audit."""
    from dragoman.registry.install import Installer

    paths, loaded = load_settings()
    with command_audit() as act, Progress() as show:
        yield Installer(paths, loaded.config.registry, act, BY, show), paths, loaded


@click.command(cls=Installing)
@click.argument("words", nargs=-1, metavar="[WORD]...")
@AS_JSON
def search(words: tuple[str, ...], as_json: bool) -> None:
    """Show the agents that can be installed, or those with all WORDs in name or description.

    Nothing is fetched: `dragoman agents refresh` fetches the public list.
    """
    from dragoman.registry.catalog import Catalog
    from dragoman.registry.records import Records

    paths, loaded = load_settings()
    catalog = Catalog(paths, loaded.config.registry)
    installed = Records(paths).all()
    found = [offer for offer in catalog.offers().values() if _matches(offer, words)]
    rows: list[dict[str, Any]] = [
        {
            "name": offer.name,
            "id": offer.entry.id,
            "title": offer.entry.name,
            "version": offer.version(offer.entry.sources[0]),
            "sources": offer.entry.sources,
            "platforms": sorted(offer.entry.distribution.binary),
            "description": offer.entry.description,
            "website": offer.entry.website or offer.entry.repository,
            "license": offer.entry.license,
            "from": offer.origin,
            "installed": installed[offer.name].version if offer.name in installed else None,
        }
        for offer in sorted(found, key=lambda offer: offer.name)
    ]
    if catalog.trouble is not None:
        complain(f"warning: {catalog.trouble}")
    if as_json:
        _print_json(rows)
        return
    cells = [
        [
            str(row["name"]),
            str(row["version"]),
            ", ".join(FROM[source] for source in row["sources"]),
            str(row["installed"] or "no"),
            str(
                row["title"]
                if row["title"] == row["description"]
                else f"{row['title']}: {row['description']}"
            ),
        ]
        for row in rows
    ]
    print_table(["NAME", "VERSION", "AS", "INSTALLED", "DESCRIPTION"], cells, COLOURS)
    if catalog.fetched is None and not rows:
        complain("nothing matches; `dragoman agents refresh` fetches the public list, which has more")


def _matches(offer: Offer, words: Sequence[str]) -> bool:
    text = f"{offer.name} {offer.entry.id} {offer.entry.name} {offer.entry.description}".lower()
    return all(word.lower() in text for word in words)


@click.command(cls=Installing)
@click.argument("names", nargs=-1, required=True, metavar="NAME[@VERSION]...")
@click.option(
    "--from",
    "source",
    type=click.Choice(["binary", "npm", "uv"]),
    help="What to install, if there are several.  [default: a program with a known hash, else a package]",
)
@click.option(
    "--scripts/--no-scripts", default=None, help="Let the package run its scripts.  [default: ask, or do not]"
)
@click.option("--repin", is_flag=True, help="Accept that this version has another hash than before.")
@click.option("--again", is_flag=True, help="Install even if this version is installed.")
@AS_JSON
def install(
    names: tuple[str, ...],
    source: Literal["binary", "npm", "uv"] | None,
    scripts: bool | None,
    repin: bool,
    again: bool,
    as_json: bool,
) -> None:
    """Install agents into Dragoman's state folder: dragoman agents install gemini

    VERSION may be `latest` for packages. Nothing is run but the package manager, unless you allow the scripts of a
    package. A running `dragoman serve` has the agent at once.
    """
    from dragoman.registry.install import Wish
    from dragoman.registry.versions import split_name

    done = []
    with installer() as (work, _, loaded):
        for text in names:
            name, version = split_name(text)
            wish = Wish(work.catalog.find(name), version, source, scripts, repin, again)
            done.append(install_asking(work, wish))
    _report(done, loaded, as_json)


def install_asking(work: Installer, wish: Wish) -> Done:
    """Install; if that needs scripts and a person is at the terminal, ask."""
    from dragoman.registry.errors import NeedsScripts

    try:
        return work.install(wish)
    except NeedsScripts as error:
        if wish.scripts is not None or not is_person():
            raise
        if not click.confirm(
            f"{error.name} works only if scripts of its package run now ({error.why}). Run them?", err=True
        ):
            raise
        from dataclasses import replace

        return work.install(replace(wish, scripts=True))


def is_person() -> bool:
    """Whether a question on the terminal would be seen and could be answered."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))


@click.command(cls=Installing)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "--scripts/--no-scripts", default=None, help="Let packages run their scripts.  [default: as before]"
)
@AS_JSON
def update(names: tuple[str, ...], scripts: bool | None, as_json: bool) -> None:
    """Update installed agents, or all of them, to the newest version that is known here.

    Older versions are removed as soon as no process uses them. Run `dragoman agents refresh` first for the newest list.
    """
    with installer() as (work, _, loaded):
        chosen = names or tuple(work.records.all())
        done = [work.update(name, scripts) for name in chosen]
    _report(done, loaded, as_json)
    if not done and not as_json:
        click.echo("no agent was installed by Dragoman")


@click.command(cls=Installing)
@click.argument("name")
@click.option("--force", is_flag=True, help="Also while processes use it.")
@AS_JSON
def uninstall(name: str, force: bool, as_json: bool) -> None:
    """Remove an agent that `agents install` installed, with all of its versions."""
    with installer() as (work, _, loaded):
        alone = name not in KNOWN and loaded.origin("agents", name, "command") == ORIGIN
        if alone and loaded.config.default_agent == name:
            raise ConfigError(
                f"{name} is the default agent: choose another first (`dragoman config set default_agent NAME`)"
            )
        agent = work.uninstall(name, force=force)
    if as_json:
        _print_json({"name": name, "version": agent.version})
    else:
        click.echo(f"uninstalled {name} {agent.version}")


@click.command(cls=Installing)
@AS_JSON
@click.pass_context
def outdated(ctx: click.Context, as_json: bool) -> None:
    """Show installed agents of which a newer version is known; the exit code is 1 if there are any."""
    with installer() as (work, _, _loaded):
        found = work.outdated()
    if as_json:
        _print_json([msgspec.to_builtins(each) for each in found])
    elif found:
        print_table(
            ["NAME", "INSTALLED", "AVAILABLE"],
            [[each.name, each.installed, each.available] for each in found],
        )
        complain("`dragoman agents update` installs them")
    else:
        click.echo("every installed agent is up to date, as far as is known here")
    ctx.exit(1 if found else 0)


@click.command(cls=Installing)
@AS_JSON
def refresh(as_json: bool) -> None:
    """Fetch the list of agents that can be installed (`registry.url`), and keep it.

    This is the only command that fetches it, and it sends nothing but the request. If the answer cannot be used, the
    list from before stays.
    """
    from dragoman.registry.fetching import display
    from dragoman.registry.index import shown

    with installer() as (work, _, _loaded):
        found = work.catalog.refresh(work.act, BY)
    for line in found.left_out[:20]:
        complain(f"left out: {shown(line)}")
    if as_json:
        _print_json(msgspec.to_builtins(found))
        return
    state = "unchanged" if found.unchanged else "fetched"
    click.echo(f"{state}: {found.agents} agents from {display(found.url)}")
    for label, names in (("new", found.new), ("gone", found.gone)):
        if names and not found.unchanged:
            click.echo(f"{label}: {', '.join(names)}")


def _report(done: Sequence[Done], loaded: Loaded, as_json: bool) -> None:
    if as_json:
        _print_json([_facts(each) for each in done])
        return
    for each in done:
        report(each, loaded)


def report(done: Done, loaded: Loaded, *, err: bool = False) -> None:
    """What was done, and what a person should know about it; with `err` all of it on stderr."""
    agent = done.agent
    if not done.changed:
        click.echo(f"{done.name} {agent.version} is installed already", err=err)
    else:
        before = f" in place of {done.before}" if done.before not in (None, agent.version) else ""
        click.echo(
            f"{style('installed', fg='green')} {done.name} {agent.version}{before} ({agent.package})", err=err
        )
    if not agent.pinned:
        complain(
            f"{done.name} is unpinned: the registry names no hash of it, so what arrived first counts "
            f"(SHA-256 {agent.hash})"
        )
    if done.scripts_left:
        complain(
            f"scripts of {agent.package} were not run; if it does not start: "
            f"`dragoman agents install {done.name} --again --scripts`"
        )
    if done.in_use:
        complain(f"still in use, removed by a later update: {', '.join(done.in_use)}")
    origin = loaded.origin("agents", done.name, "command")
    if origin not in (ORIGIN, "known agent", "default"):
        complain(f"{origin} sets agents.{done.name}.command, which is used in its place")
    known = KNOWN.get(done.name)
    if done.changed and done.before is None and known is not None and known.login:
        click.echo(f"next: {known.login}", err=err)


def _facts(done: Done) -> dict[str, Any]:
    return {
        "name": done.name,
        "changed": done.changed,
        "before": done.before,
        "inUse": list(done.in_use),
        **msgspec.to_builtins(done.agent),
    }


def _print_json(value: object) -> None:
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


COMMANDS = (search, install, update, uninstall, outdated, refresh)
