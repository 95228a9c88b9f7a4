"""Offers to install an agent at its first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from dragoman.agents.known import KNOWN, is_installed
from dragoman.config.errors import ConfigError
from dragoman.config.load import Loaded
from dragoman.config.paths import Paths
from dragoman.config.sections.workspaces import rules_for

if TYPE_CHECKING:
    from dragoman.registry.catalog import Offer


def offer_agent(asked: str | None, cwd: str, paths: Paths, loaded: Loaded) -> bool:
    """Offer the agent of a new session if its program is missing; returns whether it was installed.

    Only a person at the terminal is asked. Without one, an agent that only the registry knows is an error that names
    the command; a known one fails with its own error when it is started.
    """
    config = loaded.config
    named = (rule.agent for rule in rules_for(cwd, config.workspaces) if rule.agent is not None)
    name = asked or next(named, config.default_agent)
    agent = config.agents.get(name)
    if agent is not None and (agent.sandbox is not None or is_installed(agent)):
        return False
    from dragoman.registry.catalog import Catalog

    known = KNOWN.get(name)
    if agent is not None and (known is None or list(known.command[:1]) != agent.command[:1]):
        return False  # the user's own command, which another program would not replace
    found = Catalog(paths, config.registry).offers().get(name)
    return found is not None and _offer(found, known is not None, loaded)


def _offer(found: Offer, known: bool, loaded: Loaded) -> bool:
    from dragoman.cli.agents.registry import install_asking, installer, is_person, report
    from dragoman.registry.install import Wish, choose_source

    source = choose_source(found)
    if not is_person():
        if known:
            return False
        raise ConfigError(
            f'the agent "{found.name}" is not installed: install it: dragoman agents install {found.name}'
        )
    title = (
        found.entry.name if found.entry.name.lower() == found.name else f"{found.entry.name} ({found.name})"
    )
    what = f"{title} is not installed. Install version {found.version(source)}"
    if not click.confirm(f"{what} ({'a program' if source == 'binary' else source}) now?", err=True):
        return False
    with installer() as (work, _, _loaded):
        done = install_asking(work, Wish(found, source=source))
    report(done, loaded, err=True)
    return True
