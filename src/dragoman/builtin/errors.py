"""Errors of tools, with messages that the user or the model can act on."""

from __future__ import annotations


class ToolError(Exception):
    """The call failed; the message says why and what to do."""


class InvalidArguments(ToolError):
    """The arguments do not fit the tool; nothing was done."""


class Refused(ToolError):
    """The mode or the user rejected the call; nothing was done."""

    def __init__(self, message: str, to_person: str | None = None) -> None:
        """`to_person`: the message for a user who typed the command, if it differs from the one for the model."""
        super().__init__(message)
        self.to_person = to_person or message
