"""`_dragoman/changes`: what a session changed, one turn of it, or everything since a message."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from dragoman.gateway.delivery.conversation.messages import Message, Messages
from dragoman.gateway.json_types import decode_object
from dragoman.gateway.lifecycle.restoring import as_rpc_error
from dragoman.gateway.ports.checkpoints import Changes, CheckpointError
from dragoman.gateway.session.session import Session
from dragoman.rpc.request import Request
from dragoman.wire.errors import RpcError, internal, invalid_params

CHANGES = "_dragoman/changes"
MOST_TURNS = 50
"""Turns that are compared to tell what changed since a message."""


class ChangesWish(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    turn: int | None = None
    since: int | str | None = None
    """The number of a message, or its client's id."""


class ChangedFile(Struct, frozen=True, omit_defaults=True):
    """What turns added to and removed from one file, all together."""

    path: str
    added: int = 0
    removed: int = 0
    shared: bool = False


class SinceMessage(Struct, frozen=True, omit_defaults=True):
    """The files that turns since a message changed."""

    files: list[ChangedFile] = []
    unrecorded: bool = False
    """The files before the message are not recorded, so they cannot go back."""
    more: bool = False
    """There are later turns that were not compared."""


def read_changes_wish(request: Request) -> ChangesWish:
    params = {name: value for name, value in decode_object(request.params).items() if name[:1] != "_"}
    params.pop("sessionId", None)
    try:
        wish = msgspec.convert(params, ChangesWish)
    except msgspec.ValidationError as error:
        raise invalid_params(f"{CHANGES}: {error}", "params") from error
    if wish.turn is not None and wish.since is not None:
        raise invalid_params(f"{CHANGES} takes one of turn and since", "params")
    return wish


async def changes_of(session: Session, turn: int | None) -> Changes:
    session.services.checkpoints.catch_up()
    try:
        return await session.gateway.checkpoints.changes(session.id, turn)
    except CheckpointError as error:
        raise as_rpc_error(error) from error


async def changes_since(session: Session, found: Messages, message: Message) -> SinceMessage:
    """What the turns since a message changed, by file; without files if they are not recorded."""
    try:
        first = await turn_of(session, found, message)
        recorded = await session.gateway.checkpoints.checkpoints(session.id)
        last = max((point.turn for point in recorded), default=first)
        counts: dict[str, ChangedFile] = {}
        for turn in range(first, min(last + 1, first + MOST_TURNS)):
            for change in (await session.gateway.checkpoints.changes(session.id, turn)).files:
                before = counts.get(change.path, ChangedFile(change.path))
                counts[change.path] = ChangedFile(
                    change.path,
                    before.added + change.added,
                    before.removed + change.removed,
                    before.shared or change.shared,
                )
    except (CheckpointError, RpcError):
        return SinceMessage(unrecorded=True)
    return SinceMessage(list(counts.values()), more=last >= first + MOST_TURNS)


async def turn_of(session: Session, found: Messages, message: Message) -> int:
    """The turn, as checkpoints count, that the message began; raises if its files are not recorded."""
    session.services.checkpoints.catch_up()
    try:
        recorded = await session.gateway.checkpoints.checkpoints(session.id)
    except CheckpointError as error:
        raise as_rpc_error(error) from error
    earlier = [one.event for one in found.all if one.event < message.event]
    begun = [point for point in recorded if point.kind == "begin"]
    for point in reversed(begun):
        if max(earlier, default=0) <= point.after < message.event and point.after:
            return point.turn
    if any(point.turn == message.number and not point.after for point in begun):
        return message.number
    raise internal(f"The files before message {message.number} are not recorded", "no_turn")
