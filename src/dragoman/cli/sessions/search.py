"""`dragoman sessions search`: where something was said."""

from __future__ import annotations

import json
import sys

import click
import msgspec

from dragoman.cli.entry import complain
from dragoman.cli.sessions.state import ago, short_ids
from dragoman.cli.terminal.progress import waiting
from dragoman.cli.terminal.screen import one_line
from dragoman.config.paths import Paths
from dragoman.gateway.ports.search import BadQuery, Found, Hit, SearchUnavailable, Wanted
from dragoman.gateway.ports.store import StoreUnavailable
from dragoman.search.lookup import check_query, look_up
from dragoman.terminal import clean, style

CATCH_UP_SECONDS = 5.0
"""Seconds in which what is new is read before a search; the rest is read by later ones, or by `dragoman serve`."""


def words_of(arguments: tuple[str, ...]) -> str:
    """The query: an argument of several words is a phrase, unless it has quotation marks of its own."""
    phrases = (
        f'"{text}"' if len(text.split()) > 1 and '"' not in text and not text.endswith("*") else text
        for text in arguments
    )
    return " ".join(phrases)


def run(paths: Paths, wanted: Wanted, *, as_json: bool) -> int:
    """Search and print the hits; returns the exit code, 1 if there are none."""
    try:
        check_query(wanted)
        paths.ensure(paths.state_dir)
        with waiting("reading what is new"):
            found = look_up(paths.state_dir, wanted, complain, CATCH_UP_SECONDS)
    except BadQuery as error:
        raise click.UsageError(str(error)) from error
    except SearchUnavailable as error:
        raise StoreUnavailable(str(error)) from error
    if as_json:
        click.echo(json.dumps(msgspec.to_builtins(found.hits), indent=2, ensure_ascii=False))
    else:
        _print(found)
        if not found.hits:
            click.echo(_nothing(wanted), err=True)
    if found.behind:
        count = "1 session is" if found.behind == 1 else f"{found.behind} sessions are"
        complain(f"{count} not read to the end yet: search again for what was said there")
    return 0 if found.hits else 1


def _nothing(wanted: Wanted) -> str:
    chosen = (wanted.agent, wanted.cwd, wanted.since)
    more = "; try without --agent, --cwd and --since" if any(one is not None for one in chosen) else ""
    return f"no message has {one_line(wanted.text, 60)}{more}"


def _print(found: Found) -> None:
    """The sessions in the order of their first hits, each with all of its own."""
    short = short_ids([hit.session_id for hit in found.hits])
    sessions: dict[str, list[Hit]] = {}
    for hit in found.hits:
        sessions.setdefault(hit.session_id, []).append(hit)
    for hits in sessions.values():
        first = hits[0]
        facts = [first.agent, ago(first.at), one_line(first.title or "", 40), one_line(first.cwd)]
        if first.only_agent:
            facts.append("(only in the agent's own history)")
        line = "  ".join(filter(None, facts))
        click.echo(f"{style(clean(short[first.session_id]), fg='cyan')}  {line}")
        for hit in hits:
            mark = style("(undone) ", dim=True) if hit.undone else ""
            click.echo(f"  {f'#{hit.event}':>6}  {hit.by:7}  {mark}{_excerpt(hit)}")


def _excerpt(hit: Hit) -> str:
    """The text around the match as one line, matches in bold on a terminal."""
    if not sys.stdout.isatty():
        return one_line(hit.text, len(hit.text) + 1)
    parts, place = [], 0
    for begin, end in hit.matches:
        parts += [_flat(hit.text[place:begin]), style(_flat(hit.text[begin:end]), bold=True)]
        place = end
    return "".join([*parts, _flat(hit.text[place:])]).strip()


def _flat(text: str) -> str:
    return clean(text.replace("\n", " ").replace("\t", " "))
