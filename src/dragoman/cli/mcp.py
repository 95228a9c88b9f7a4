"""`dragoman mcp`: the MCP servers of the configuration."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING

import click

from dragoman.cli.commands import AS_JSON, SETTINGS, WholeLines
from dragoman.cli.settings import load_settings
from dragoman.cli.terminal.table import print_table
from dragoman.terminal import escape

if TYPE_CHECKING:
    from dragoman.config.sections.mcp import McpConfig


@click.group(cls=WholeLines, context_settings=SETTINGS)
def mcp() -> None:
    """List the MCP servers that sessions get beside those of their client.

    They are the tables [mcp.NAME] of the configuration; see docs/how-to/mcp.md.
    """


@mcp.command("list")
@AS_JSON
def list_servers(as_json: bool) -> None:
    """Show each server and which sessions get it; values of variables, headers and secrets are not shown."""
    _, loaded = load_settings(quiet=True)
    servers = loaded.config.mcp
    if as_json:
        click.echo(json.dumps([{"name": name, **_facts(each)} for name, each in servers.items()], indent=2))
        return
    if not servers:
        click.echo("There are none: add a table [mcp.NAME] to the configuration.", err=True)
        return
    rows = [
        [name, _where(each), ", ".join(each.agents) or "all", ", ".join(each.workspaces) or "everywhere",
         "yes" if each.enabled else "off"]
        for name, each in servers.items()
    ]  # fmt: skip
    print_table(["NAME", "SERVER", "AGENTS", "WORKSPACES", "ENABLED"], rows, {"off": "yellow"})


def _where(server: McpConfig) -> str:
    return escape(server.url or shlex.join(server.command))


def _facts(server: McpConfig) -> dict[str, object]:
    reach: dict[str, object] = (
        {"command": server.command, "env": sorted(server.env)}
        if server.url is None
        else {"url": server.url, "transport": server.transport, "headers": sorted(server.headers)}
    )
    chosen = {"agents": server.agents, "workspaces": server.workspaces, "enabled": server.enabled}
    return {**reach, "secrets": server.secrets, **chosen}
