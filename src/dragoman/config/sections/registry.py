"""`[registry]` in the configuration: where the list of agents comes from, and the bounds of a download."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

PUBLIC = "https://cdn.agentclientprotocol.com/registry/v1/latest/registry.json"


class RegistryConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Agents that can be installed; nothing is fetched but by `dragoman agents refresh`, `install` and `update`."""

    url: Annotated[
        str,
        Meta(description="The registry that `agents refresh` fetches; `https`, or `http` on this machine."),
    ] = PUBLIC
    timeout: Annotated[
        float, Meta(gt=0, description="Seconds that one download, or one run of npm or uv, may take.")
    ] = 900.0
    max_bytes: Annotated[int, Meta(ge=1, description="Most bytes of one download.")] = 1024 * 1024 * 1024
