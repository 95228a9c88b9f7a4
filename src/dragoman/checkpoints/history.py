"""A session's checkpoints: a chain of commits whose messages say what each one is."""

from __future__ import annotations

import msgspec

from dragoman.checkpoints.repository import Repository
from dragoman.gateway.ports.checkpoints import Checkpoint, CheckpointError

_FORMAT = "--format=%H %T%n%B%x00"


def history(repository: Repository, session_id: str, limit: int | None = None) -> list[Checkpoint]:
    """The session's checkpoints, the oldest first; with `limit` only the last ones."""
    tip = repository.tip(session_id)
    if tip is None:
        return []
    last = [] if limit is None else [f"-{limit}"]
    printed = repository.git.run("log", "--first-parent", "-z", _FORMAT.replace("%x00", ""), *last, tip)
    return [_read(entry) for entry in reversed(printed.split(b"\0")) if entry]


def _read(entry: bytes) -> Checkpoint:
    head, _, message = entry.partition(b"\n")
    commit, tree = head.decode().split()
    try:
        told = msgspec.json.decode(message.strip(), type=Checkpoint)
    except msgspec.DecodeError as error:
        raise CheckpointError(f"The checkpoint {commit} is damaged: {error}") from error
    return msgspec.structs.replace(told, id=commit, tree=tree)


def last_turn(checkpoints: list[Checkpoint]) -> int:
    return checkpoints[-1].turn if checkpoints else 0
