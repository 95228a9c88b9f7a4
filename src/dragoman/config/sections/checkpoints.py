"""The part of the configuration that is about checkpoints."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct


class CheckpointsConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The files of a session's project, recorded at the beginning and end of each turn."""

    enabled: Annotated[
        bool, Meta(description="Record them; `dragoman changes`, `revert` and `rewind` need it.")
    ] = True
    patience: Annotated[
        float,
        Meta(ge=0, description="Seconds that a prompt waits for its checkpoint, which is marked late then."),
    ] = 0.2
    max_files: Annotated[
        int, Meta(ge=1, description="A project with more files, ignored ones not counted, is not recorded.")
    ] = 100_000
    max_file_bytes: Annotated[
        int, Meta(ge=1, description="A larger file is left out, and named as left out.")
    ] = 10_485_760
    max_bytes: Annotated[
        int, Meta(ge=1, description="Most bytes of new content that one checkpoint records.")
    ] = 1_073_741_824
