"""`dragoman tokens`: list, create and revoke tokens for `dragoman serve`."""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING, Any

import click

from dragoman.cli.audit.tell import telling
from dragoman.cli.commands import AS_JSON, SETTINGS, WholeLines
from dragoman.cli.settings import load_settings
from dragoman.cli.terminal.table import print_table
from dragoman.gateway.access.identity import ROLES

if TYPE_CHECKING:
    from dragoman.server.auth.named_tokens import Token, TokenFile

UNITS = {"m": 60, "h": 3600, "d": 86400, "w": 604800}


class Lifetime(click.ParamType[float]):
    name = "lifetime"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        match = re.fullmatch(r"([0-9]{1,6})([mhdw])", str(value))
        if match is None or not int(match[1]):
            self.fail(
                f'"{value}" is not a lifetime: expected a number with m, h, d or w, such as 30d', param, ctx
            )
        return float(int(match[1]) * UNITS[match[2]])


@click.group(cls=WholeLines, context_settings=SETTINGS)
def tokens() -> None:
    """List, create and revoke tokens for `dragoman serve`.

    A running `serve` takes changes over by itself. Its own token, which it prints, is not in this list.
    """


@tokens.command("list")
@AS_JSON
def list_tokens(as_json: bool) -> None:
    """Show names, roles and expiry; the secrets are not stored."""
    known = _file().read()
    if as_json:
        click.echo(json.dumps([token.facts() for token in known], indent=2))
        return
    now = time.time()
    rows = [
        [token.name, token.role, _day(token.created), _ends(token, now), _limits(token)] for token in known
    ]
    print_table(["NAME", "ROLE", "CREATED", "EXPIRES", "LIMITS"], rows, {"expired": "red"})


@tokens.command()
@click.argument("name")
@click.option("--role", type=click.Choice(list(ROLES)), default="control", show_default=True)
@click.option("--expires", type=Lifetime(), metavar="TIME", help="Lifetime, such as 12h, 30d or 8w.")
@click.option("--requests", type=click.IntRange(0), metavar="N", help="Most requests per minute.")
@click.option("--bytes", "bytes_", type=click.IntRange(0), metavar="N", help="Most bytes per minute.")
@click.option("--sessions", type=click.IntRange(0), metavar="N", help="Most live sessions.")
@click.option("--turns", type=click.IntRange(0), metavar="N", help="Most turns at once.")
def create(
    name: str,
    role: str,
    expires: float | None,
    requests: int | None,
    bytes_: int | None,
    sessions: int | None,
    turns: int | None,
) -> None:
    """Make a token and print its secret: once, on stdout, and never again.

    observe: read along. approve: also answer questions. control: everything with sessions. admin: also tokens and
    limits. Limits that are not given are those of [serve.quotas]; 0 is no limit.
    """
    given = {
        "requests_per_minute": requests,
        "bytes_per_minute": bytes_,
        "sessions": sessions,
        "turns": turns,
    }
    quotas = {key: value for key, value in given.items() if value is not None}
    with telling("token_made", name=name, role=role):
        token, secret = _file().create(name, role, lifetime=expires, quotas=quotas)
    click.echo(secret)
    click.echo(f"{token.name} may {role}, {_until(token)}. This is the only time that it is shown.", err=True)


@tokens.command()
@click.argument("name")
def revoke(name: str) -> None:
    """Revoke a token and disconnect its clients."""
    with telling("token_revoked", name=name):
        _file().revoke(name)
    click.echo(f"revoked {name}")


def _file() -> TokenFile:
    from dragoman.server.auth.named_tokens import TokenFile

    paths, _ = load_settings(quiet=True)
    paths.ensure(paths.state_dir)
    return TokenFile(paths.tokens_file)


def _day(moment: float) -> str:
    from dragoman.server.auth.named_tokens import date_of

    return date_of(moment).strftime("%Y-%m-%d %H:%M")


def _ends(token: Token, now: float) -> str:
    if token.expires is None:
        return "never"
    return "expired" if token.expired(now) else _day(token.expires)


def _until(token: Token) -> str:
    return "until it is revoked" if token.expires is None else f"until {_day(token.expires)}"


def _limits(token: Token) -> str:
    return ", ".join(f"{key}={value}" for key, value in token.quotas.items())
