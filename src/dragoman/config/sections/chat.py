"""`[chat]`: the chat in the terminal."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct


class ChatConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`dragoman chat`."""

    notify: Annotated[
        Literal["unfocused", "always", "never"],
        Meta(
            description="When a question waits or a turn ended, notify by the terminal (OSC 9 and the bell): "
            "if its window is not in front, which some terminals do not report, always, or never."
        ),
    ] = "unfocused"
