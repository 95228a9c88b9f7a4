"""What the user always allows in a session, by pattern. What holds for longer is remembered by the gateway."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from dragoman.builtin.tools.tool import Json, Scope

ALLOW_ONCE, ALLOW_ALWAYS, REJECT = "allow_once", "allow_always", "reject_once"


class AlwaysAllowed:
    """The "always" answers of one session, which end with the process."""

    def __init__(self) -> None:
        self._keys: set[str] = set()

    def covers(self, scope: Scope) -> bool:
        """Whether the user always allows this scope or one that includes it."""
        if scope.key in self._keys:
            return True
        effect, _, subject = scope.key.partition(":")
        if effect != "write":
            return False
        return any(f"write:{parent}" in self._keys for parent in PurePath(subject).parents)

    def remember(self, scope: Scope) -> None:
        self._keys.add(scope.key)


def options(scope: Scope | None) -> Sequence[Json]:
    """The answers that a question offers."""
    always = [] if scope is None else [_option(ALLOW_ALWAYS, f"Allow {scope.words} in this session")]
    return [_option(ALLOW_ONCE, "Allow"), *always, _option(REJECT, "Reject")]


def _option(kind: str, name: str) -> Json:
    return {"optionId": kind, "name": name, "kind": kind}
