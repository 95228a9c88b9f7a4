"""Which changes are not a session's alone.

Between two checkpoints of a session, one after the other, its files change

- in a turn, from its beginning to its end: the session's own, unless a turn of another session in the same project ran
  at the same time and its checkpoints show the same file changed;
- while files are restored: its own;
- otherwise, between two turns or after a turn whose end was not recorded: by a person, a program or another session.
  Checkpoints cannot tell these apart, so such changes are shared.

For a commit, the project's last commit is compared too: changes from before the first turn are not the session's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from dragoman.checkpoints import difference
from dragoman.checkpoints.history import history
from dragoman.checkpoints.repository import Repository
from dragoman.gateway.ports.checkpoints import Checkpoint, FileState

OTHERS = 50
"""Sessions of the same project that are looked at, those used last."""
_OWN = {("begin", "end"), ("before", "after")}


def shared_paths(
    repository: Repository, session_id: str, chain: Sequence[Checkpoint], running: bool
) -> set[bytes]:
    """Paths with changes that are not the session's alone; `chain` is all its checkpoints of the range, in order.

    With `running` the last one is the present of a turn that has begun.
    """
    found: set[bytes] = set()
    turns: list[tuple[str, str]] = []
    steps = list(pairwise(chain))
    for number, (earlier, later) in enumerate(steps):
        own = (earlier.kind, later.kind) in _OWN or (running and number == len(steps) - 1)
        if not own:
            found |= difference.paths(repository.git, earlier.tree, later.tree)
        elif earlier.kind == "begin" and earlier.tree != later.tree:
            turns.append((earlier.time, later.time))
    if turns:
        for earlier, later in _turns_of_others(repository, session_id, turns):
            found |= difference.paths(repository.git, earlier.tree, later.tree)
    return found


def own_paths(repository: Repository, chain: Sequence[Checkpoint], turn: int | None) -> set[bytes]:
    """Paths that the session's turns, or one of them, changed; the last of `chain` may be the present of a turn."""
    found: set[bytes] = set()
    for earlier, later in pairwise(chain):
        meant = turn is None or (earlier.turn == turn and earlier.kind == "begin")
        if meant and (earlier.kind, later.kind) in _OWN:
            found |= difference.paths(repository.git, earlier.tree, later.tree)
    return found


def own_states(
    repository: Repository, session_id: str, chain: Sequence[Checkpoint], running: bool
) -> dict[bytes, set[FileState]]:
    """What each path was since others changed it last, or since the first checkpoint; none if they did so last.

    The last of `chain` is the present; with `running` that of a turn that has begun.
    """
    steps = [pair for pair in pairwise(chain) if pair[0].tree != pair[1].tree]
    last = chain[-1]
    turns = [(a.time, b.time) for a, b in steps if a.kind == "begin" and (b.kind == "end" or b is last)]
    others = list(_turns_of_others(repository, session_id, turns)) if turns else []
    found: dict[bytes, set[FileState]] = {}
    closed: set[bytes] = set()
    for earlier, later in reversed(steps):
        changed = difference.raw(repository.git, earlier.tree, later.tree)
        if (earlier.kind, later.kind) not in _OWN and not (running and later is last):
            closed |= {one.path for one in changed}
        elif earlier.kind == "begin":
            for began, ended in others:
                if began.time < later.time and ended.time > earlier.time:
                    closed |= difference.paths(repository.git, began.tree, ended.tree)
        for one in changed:
            if one.path not in closed:
                states = found.setdefault(one.path, set())
                states |= {
                    (entry.mode, entry.object) if entry is not None else None for entry in (one.old, one.new)
                }
    return found


def _turns_of_others(
    repository: Repository, session_id: str, turns: list[tuple[str, str]]
) -> Iterator[tuple[Checkpoint, Checkpoint]]:
    since = min(began for began, _ in turns)
    for other in repository.used_since(since, OTHERS):
        if other == session_id:
            continue
        for earlier, later in pairwise(history(repository, other)):
            overlaps = any(earlier.time < ended and later.time > began for began, ended in turns)
            if overlaps and earlier.kind == "begin" and earlier.tree != later.tree:
                yield earlier, later
