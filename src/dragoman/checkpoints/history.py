"""A session's checkpoints: a chain of commits whose messages say what each one is.

A message is one line of JSON for each checkpoint: several between which nothing changed may be one commit.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from dragoman.checkpoints.repository import Repository
from dragoman.gateway.ports.checkpoints import Checkpoint, CheckpointError

_FORMAT = "--format=%H %T%n%B%x00"


def history(repository: Repository, session_id: str, limit: int | None = None) -> list[Checkpoint]:
    """The session's checkpoints, the oldest first; with `limit` only those of the last commits."""
    tip = repository.tip(session_id)
    if tip is None:
        return []
    last = [] if limit is None else [f"-{limit}"]
    printed = repository.git.run("log", "--first-parent", "-z", _FORMAT.replace("%x00", ""), *last, tip)
    return [point for entry in reversed(printed.split(b"\0")) if entry for point in _read(entry)]


def _read(entry: bytes) -> list[Checkpoint]:
    head, _, message = entry.partition(b"\n")
    commit, tree = head.decode().split()
    try:
        told = [msgspec.json.decode(line, type=Checkpoint) for line in message.strip().split(b"\n")]
    except msgspec.DecodeError as error:
        raise CheckpointError(f"The checkpoint {commit} is damaged: {error}") from error
    return [msgspec.structs.replace(point, id=commit, tree=tree) for point in told]


def message_of(points: Iterable[Checkpoint]) -> bytes:
    return b"\n".join(map(msgspec.json.encode, points)) + b"\n"


def last_turn(checkpoints: list[Checkpoint]) -> int:
    return checkpoints[-1].turn if checkpoints else 0
