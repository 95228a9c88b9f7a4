"""The part of the configuration that is about worktrees."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct


class WorktreesConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A folder and a branch of its own for each session, beside the repository that it was started in."""

    enabled: Annotated[
        bool, Meta(description="Give every new session in a git repository a worktree, as `--worktree` does.")
    ] = False
    copy: Annotated[
        list[str],
        Meta(description="Files that git does not track, by their paths in the repository, such as `.env`."),
    ] = []
    setup: Annotated[
        list[str],
        Meta(
            description="Shell lines that prepare a new worktree, such as `npm ci`; run only once approved."
        ),
    ] = []
