"""The table of one sandbox in the configuration."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

SandboxKind = Literal["local", "bubblewrap", "podman", "docker", "ssh", "command"]


class SandboxConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One way to run an agent apart from the rest of the machine."""

    kind: Annotated[SandboxKind, Meta(description="What makes the box.")] = "local"
    workspace: Annotated[
        str | None, Meta(description="Where the workspace appears inside the box; unset: at its own path.")
    ] = None
    elsewhere: Annotated[
        bool,
        Meta(
            description="The box has another machine's files, as with `ssh` or a remote engine: the agent is "
            "not offered files of this machine."
        ),
    ] = False
    image: Annotated[str | None, Meta(description="The image of a `podman` or `docker` box.")] = None
    host: Annotated[str | None, Meta(description="The machine of an `ssh` box, as `ssh` takes it.")] = None
    command: Annotated[
        list[str],
        Meta(description="The template of a `command` box, with `{workspace}`, `{cwd}` and `{agent...}`."),
    ] = []
    env: Annotated[dict[str, str], Meta(description="Added to the environment inside the box.")] = {}
    pass_env: Annotated[
        list[str],
        Meta(description="Variables that go into the box, besides the few that always do; `*` works."),
    ] = []
    network: Annotated[bool, Meta(description="Whether the box reaches the network.")] = True
    roots: Annotated[
        list[str],
        Meta(description="Folders that a workspace must lie in; empty: anywhere but the home itself."),
    ] = []
    mounts: Annotated[
        list[str], Meta(description="More folders that the box may write to, as `PATH` or `PATH:INSIDE`.")
    ] = []
    read_only: Annotated[
        list[str], Meta(description="More files and folders that it may read, as `PATH` or `PATH:INSIDE`.")
    ] = []
    login_files: Annotated[
        list[str] | None,
        Meta(
            description="Files shown read-only so that the agent is logged in; unset: the known agent's own."
        ),
    ] = None
    home: Annotated[
        str | None,
        Meta(
            description="The home inside, empty but for login files; unset: `/root`, in bubblewrap your own path."
        ),
    ] = None
    user: Annotated[str | None, Meta(description="The user in a container, as `--user` takes it.")] = None
    memory: Annotated[str | None, Meta(description="The most memory, such as `2g`.")] = None
    cpus: Annotated[float, Meta(ge=0, description="The most processors of a container; 0: no limit.")] = 0.0
    processes: Annotated[int, Meta(ge=0, description="The most processes; 0: no limit.")] = 0
    hosts: Annotated[list[str], Meta(description="More host names of a container, as `NAME:ADDRESS`.")] = []
    keep: Annotated[
        bool, Meta(description="Keep the container when the gateway ends; otherwise it is removed.")
    ] = False
    engine: Annotated[
        list[str], Meta(description="The engine's program and global options; unset: `podman` or `docker`.")
    ] = []
    options: Annotated[
        list[str], Meta(description="More arguments for the engine's `run`, or for `ssh`.")
    ] = []
