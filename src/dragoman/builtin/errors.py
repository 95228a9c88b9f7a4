"""What can go wrong in a tool, said so that both a person and a model can act on it."""

from __future__ import annotations


class ToolError(Exception):
    """The call did not do what it was asked; the message says why and what to do."""


class InvalidArguments(ToolError):
    """The arguments do not fit the tool; nothing was done."""


class Refused(ToolError):
    """The mode or the user said no; nothing was done."""

    def __init__(self, message: str, to_person: str | None = None) -> None:
        """`to_person`: what somebody who typed the command is told, where a model needs other words."""
        super().__init__(message)
        self.to_person = to_person or message
