"""`[mcp.NAME]` in the configuration: MCP servers that sessions get beside those of their client."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from dragoman.config.sections.workspaces import covers


class McpConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One MCP server: a program (`command`) or an address (`url`)."""

    command: Annotated[list[str], Meta(description="The program of a stdio server, and its arguments.")] = []
    env: Annotated[dict[str, str], Meta(description="Variables for that program.")] = {}
    url: Annotated[
        str | None, Meta(description="Where a server listens: `http://` or `https://`, instead of `command`.")
    ] = None
    transport: Annotated[Literal["http", "sse"], Meta(description="How a server with a `url` speaks.")] = (
        "http"
    )
    headers: Annotated[dict[str, str], Meta(description="Headers for a server with a `url`.")] = {}
    secrets: Annotated[
        dict[str, str],
        Meta(
            description="More variables, or headers, from `env:NAME`, `file:PATH` or `keyring:SERVICE/ACCOUNT`."
        ),
    ] = {}
    agents: Annotated[
        list[str],
        Meta(description="Only for these agents; empty: for all but `remote` ones, which must be named."),
    ] = []
    workspaces: Annotated[
        list[str], Meta(description="Only below these directories or globs; empty: everywhere.")
    ] = []
    enabled: Annotated[bool, Meta(description="Give it to sessions.")] = True

    def is_for(self, agent: str, remote: bool, cwd: str) -> bool:
        if not self.enabled or not (agent in self.agents if self.agents or remote else True):
            return False
        return not self.workspaces or any(covers(pattern, cwd) for pattern in self.workspaces)
