"""What the user always allows, by pattern; stored per workspace, so that it survives restarts."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Sequence
from pathlib import Path, PurePath

import msgspec

from dragoman.atomic_file import replace_file
from dragoman.builtin.tools.tool import Json, Scope

log = logging.getLogger(__name__)

ALLOW_ONCE, ALLOW_ALWAYS, REJECT = "allow_once", "allow_always", "reject_once"


class AlwaysAllowed:
    """The stored "always" answers of one workspace."""

    def __init__(self, folder: Path | None, cwd: str) -> None:
        """`folder` is where answers are stored; None stores them in memory only."""
        digest = hashlib.sha256(os.fsencode(cwd)).hexdigest()[:32]
        self._file = folder / f"{digest}.json" if folder is not None else None
        self._keys = self._load()

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
        if self._file is None:
            return
        try:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_file(self._file, msgspec.json.encode(sorted(self._keys | self._load())))
        except OSError as error:
            log.warning("an answer is remembered for this session only: %s", error)

    def _load(self) -> set[str]:
        if self._file is None:
            return set()
        try:
            return set(msgspec.json.decode(self._file.read_bytes(), type=list[str]))
        except FileNotFoundError:
            return set()
        except (OSError, msgspec.DecodeError, msgspec.ValidationError) as error:
            log.warning("remembered answers cannot be read: %s", error)
            return set()


def options(scope: Scope | None) -> Sequence[Json]:
    """The answers that a question offers."""
    always = [] if scope is None else [_option(ALLOW_ALWAYS, f"Always allow {scope.words}")]
    return [_option(ALLOW_ONCE, "Allow"), *always, _option(REJECT, "Reject")]


def _option(kind: str, name: str) -> Json:
    return {"optionId": kind, "name": name, "kind": kind}
