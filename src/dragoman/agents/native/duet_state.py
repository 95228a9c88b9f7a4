"""The state of a duet beyond its two agents' own records, stored while its processes do not run."""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path

import msgspec

from dragoman.atomic_file import replace_file

log = logging.getLogger(__name__)


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
        if self._folder is None:
            return None
        try:
            return msgspec.json.decode(self._file(self._folder, session_id).read_bytes(), type=DuetState)
        except (OSError, msgspec.DecodeError):
            return None  # missing or unreadable: the guest starts a new session

    def write(self, session_id: str, known: DuetState) -> None:
        if self._folder is None:
            return
        file = self._file(self._folder, session_id)
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_file(file, msgspec.json.encode(known))
        except OSError as error:
            log.warning("duet state not saved; the guest starts a new session after a restart: %s", error)

    def forget(self, session_id: str) -> None:
        if self._folder is not None:
            self._file(self._folder, session_id).unlink(missing_ok=True)

    @staticmethod
    def _file(folder: Path, session_id: str) -> Path:
        return folder / f"{hashlib.sha256(session_id.encode()).hexdigest()[:32]}.json"
