"""The state of a duet beyond its two agents' own records, stored while its processes do not run."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec

from dragoman.agents.native.json_file import JsonFile


class DuetState(msgspec.Struct):
    """The duet state of one session: who answers, the guest's session, and the turns that each agent missed."""

    speaker: str
    guest_id: str | None = None
    missed: dict[str, str] = {}


class DuetStates:
    """Stores one file for each session with a guest."""

    def __init__(self, state: Path | None) -> None:
        self._folder = state / "duets" if state is not None else None

    def read(self, session_id: str) -> DuetState | None:
        """None if it is missing or unreadable: the guest starts a new session."""
        try:
            return msgspec.convert(self._file(session_id).read(), DuetState)
        except msgspec.ValidationError:
            return None

    def write(self, session_id: str, known: DuetState) -> None:
        self._file(session_id).write(msgspec.to_builtins(known))

    def forget(self, session_id: str) -> None:
        self._file(session_id).remove()

    def _file(self, session_id: str) -> JsonFile:
        return JsonFile(self._folder, f"{hashlib.sha256(session_id.encode()).hexdigest()[:32]}.json")
