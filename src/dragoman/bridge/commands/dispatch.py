"""Runs each command once, however often it is sent, and answers with `ack` or `error`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from dragoman.bridge import limits
from dragoman.bridge.commands.table import COMMANDS, Command, Outcome, Repeated
from dragoman.bridge.errors import BridgeError, as_bridge_error
from dragoman.gateway.json_types import JsonObject

if TYPE_CHECKING:
    from dragoman.bridge.client import BridgeClient


Key = tuple[str, str]
"""Token name and command id; stored per token, so that one token cannot push out the entries of another."""


class Seen:
    """Outcomes of recent commands."""

    def __init__(self) -> None:
        self._outcomes: dict[str, dict[str, Outcome]] = {}
        """By token, oldest first."""

    def get(self, key: Key) -> Outcome | None:
        token, command = key
        return self._outcomes.get(token, {}).get(command)

    def begin(self, key: Key) -> Outcome:
        token, command = key
        outcome: Outcome = asyncio.get_running_loop().create_future()
        known = self._outcomes.setdefault(token, {})
        known[command] = outcome
        if len(known) > limits.REMEMBERED_COMMANDS:
            # Running commands stay, to be recognized when sent again; their number has a limit of its own.
            over = next((each for each, former in known.items() if former.done()), None)
            if over is not None:
                del known[over]
        return outcome

    def end(self, key: Key, found: str | BridgeError | None) -> None:
        """Set the outcome; a failed command is dropped and may be tried again under the same id."""
        outcome = self.get(key)
        if outcome is not None and not outcome.done():
            outcome.set_result(found)
        if isinstance(found, BridgeError):
            token, command = key
            self._outcomes.get(token, {}).pop(command, None)


async def run(client: BridgeClient, command: JsonObject) -> None:
    """Run a command; a long one finishes in the background while the next commands run."""
    known = _find(client, command)
    message_id = _message_id(command)
    if known.observers or message_id is None:
        key = None
    else:
        about = "\n".join((command["type"], str(command.get("sessionId"))[: limits.ID_LENGTH], message_id))
        key = (client.terms.identity.name, about)
        former = client.bridge.seen.get(key)
        if former is not None:
            client.bridge.gateway.spawn(_answer_again(client, command, former))
            return
        client.bridge.seen.begin(key)
    try:
        result = await known.handler(client, command)
    except Repeated as repeated:
        _done(client, command, key, repeated.session_id, duplicate=True)
        return
    except Exception as error:  # a repeated command must not wait for this one
        if key is not None:
            client.bridge.seen.end(key, as_bridge_error(error))
        raise
    if isinstance(result, asyncio.Future):
        client.bridge.gateway.spawn(_finish(client, command, key, result))
    else:
        _done(client, command, key, result)


def _find(client: BridgeClient, command: JsonObject) -> Command:
    known = COMMANDS.get(str(command["type"]))
    if known is None:
        names = "Known are " + ", ".join(COMMANDS) + "."
        raise BridgeError("unknown_type", f"There is no command {command['type']!r}.", names)
    if not known.observers:
        client.gateway_client.client.check(command["type"])
    return known


async def _finish(client: BridgeClient, command: JsonObject, key: Key | None, result: Outcome) -> None:
    found = await result
    if isinstance(found, BridgeError):
        if key is not None:
            client.bridge.seen.end(key, found)
        client.fail(found, command)
    else:
        _done(client, command, key, found)


async def _answer_again(client: BridgeClient, command: JsonObject, former: Outcome) -> None:
    found = await asyncio.shield(former)
    if isinstance(found, BridgeError):
        client.fail(found, command)
    else:
        _acknowledge(client, command, found, duplicate=True)


def _done(
    client: BridgeClient, command: JsonObject, key: Key | None, found: str | None, *, duplicate: bool = False
) -> None:
    if key is not None:
        client.bridge.seen.end(key, found)
    _acknowledge(client, command, found, duplicate=duplicate)


def _acknowledge(
    client: BridgeClient, command: JsonObject, session_id: str | None, *, duplicate: bool
) -> None:
    if "clientMessageId" not in command:
        return
    ack: JsonObject = {"type": "ack", "clientMessageId": command["clientMessageId"]}
    if session_id is not None:
        ack["sessionId"] = session_id
    client.tell({**ack, "duplicate": True} if duplicate else ack)


def _message_id(command: JsonObject) -> str | None:
    given = command.get("clientMessageId")
    if given is None:
        command.pop("clientMessageId", None)
        return None
    if not isinstance(given, str) or not 0 < len(given) <= limits.ID_LENGTH:
        del command["clientMessageId"]
        raise BridgeError(
            "bad_request", f"`clientMessageId` must be a text of at most {limits.ID_LENGTH} letters."
        )
    return given
