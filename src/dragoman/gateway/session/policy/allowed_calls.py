"""What was allowed in a turn, for the files and commands that follow from it without another question."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from dragoman.gateway.json_types import JsonObject
from dragoman.wire import limits

_CHANGES_FOLDER = frozenset({"cd", "pushd", "popd"})
_SHELLS = frozenset({"sh", "bash", "dash", "zsh"})


_COMPARED = ("commands", "folder", "wrappers", "paths", "hosts", "mcp", "opaque")


class Requirement(Protocol):
    """Approvals that a rule wants."""

    @property
    def rule(self) -> str: ...

    @property
    def approvals(self) -> int: ...

    @property
    def approvers(self) -> tuple[str, ...]: ...


@dataclass(frozen=True, slots=True)
class Allowed:
    act: JsonObject
    call: object = None
    """The id of its tool call."""
    by_hook: bool = False
    """A hook told of it; otherwise the agent asked."""
    approved: frozenset[tuple[str, int, tuple[str, ...]]] = frozenset()
    """The requirements of rules that people met with their approvals."""

    def meets(self, wanted: Iterable[Requirement]) -> bool:
        return _requirements(wanted) <= self.approved


class AllowedCalls:
    """Tool calls that were allowed in this turn, each for one call of a service."""

    def __init__(self) -> None:
        self._calls: deque[Allowed] = deque(maxlen=limits.ALLOWED_CALLS)

    def add(
        self,
        act: JsonObject,
        call: object = None,
        *,
        by_hook: bool = False,
        approved: Iterable[Requirement] = (),
    ) -> None:
        self._calls.append(Allowed(act, call, by_hook, _requirements(approved)))

    def clear(self) -> None:
        self._calls.clear()

    def take(self, act: JsonObject, wanted: Iterable[Requirement] = ()) -> bool:
        """Whether one of them is this act, with the approvals that are wanted for it; it is used up."""
        wanted = tuple(wanted)
        for allowed in self._calls:
            if allowed.meets(wanted) and _is_within(act, allowed.act):
                self._calls.remove(allowed)
                return True
        return False

    def covers(
        self, act: JsonObject, call: object, wanted: Iterable[Requirement] = (), *, by_hook: bool
    ) -> bool:
        """Whether this very call was allowed when its hook told of it (`by_hook`), or when the agent asked.

        An agent with hooks tells of a call twice; it is decided about once.
        """
        wanted = tuple(wanted)
        return any(
            isinstance(call, str)
            and allowed.meets(wanted)
            and (allowed.call, allowed.by_hook) == (call, by_hook)
            and (_is_within(act, allowed.act) or _same(act, allowed.act))
            for allowed in self._calls
        )


def _is_within(act: JsonObject, allowed: JsonObject) -> bool:
    """Whether the allowed act did all that this one does: the same commands, and writes to the same paths."""
    if act["opaque"] is not None or (act["commands"] and not _runs_within(act, allowed)):
        return False
    paths = [path["path"] for path in allowed["paths"] if path["access"] == "write"]
    reads = [path["path"] for path in allowed["paths"]]
    return all(
        path["path"] in (paths if path["access"] == "write" else reads) for path in act["paths"]
    ) and bool(act["commands"] or act["paths"])


def _runs_within(act: JsonObject, allowed: JsonObject) -> bool:
    """Whether these commands are among the allowed ones, in the same folder and started in the same way."""
    folder = act.get("folder")
    if not folder or folder != allowed.get("folder") or _wrappers(act) != _wrappers(allowed):
        return False
    lines, allowed_lines = _lines(act), _lines(allowed)
    if any(words and words[0] in _CHANGES_FOLDER for words, _ in (*lines, *allowed_lines)):
        return lines == allowed_lines  # of a part of them it is not known where it ran
    return all(line in allowed_lines for line in lines)


def _lines(act: JsonObject) -> list[tuple[list[str], JsonObject]]:
    return [(command["words"], command["env"]) for command in act["commands"]]


def _wrappers(act: JsonObject) -> list[list[str]]:
    """Programs that start another, such as `env -C folder`; what a shell is given is read."""
    return [words for words in act["wrappers"] if not words or words[0].rpartition("/")[2] not in _SHELLS]


def _requirements(wanted: Iterable[Requirement]) -> frozenset[tuple[str, int, tuple[str, ...]]]:
    return frozenset((one.rule, one.approvals, one.approvers) for one in wanted)


def _same(act: JsonObject, allowed: JsonObject) -> bool:
    """Whether two acts have the same facts, however the tool is called in each."""
    return all(act.get(name) == allowed.get(name) for name in _COMPARED)
