"""Reads the fields of a command; a wrong type raises `BridgeError`."""

from __future__ import annotations

from typing import TypeVar

from dragoman.bridge.errors import BridgeError, unknown_session
from dragoman.gateway.json_types import JsonObject

Otherwise = TypeVar("Otherwise", int, None)


def echoed_id(command: JsonObject) -> JsonObject:
    """The command's `clientMessageId`, if it has one, to be repeated in the response."""
    return {"clientMessageId": command["clientMessageId"]} if "clientMessageId" in command else {}


def session_id(command: JsonObject) -> str:
    given = command.get("sessionId")
    if given is None:
        raise BridgeError("bad_request", "`sessionId` is missing.")
    if not isinstance(given, str):
        raise unknown_session()
    return given


def text(command: JsonObject, name: str) -> str | None:
    value = command.get(name)
    if value is not None and not isinstance(value, str):
        raise BridgeError("bad_request", f"`{name}` must be a text.")
    return value or None


def number(command: JsonObject, name: str, otherwise: Otherwise) -> int | Otherwise:
    value = command.get(name)
    if value is None:
        return otherwise
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise BridgeError("bad_request", f"`{name}` must be a number that is not negative.")
    return value
