"""Agents' capabilities, cached on disk, so that an editor is answered before the agent has started."""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path

import msgspec

from dragoman.atomic_file import replace_file

log = logging.getLogger(__name__)

MAX_FILES = 200
"""Most files in the cache, one per version of each agent; the oldest are removed."""


class FileCapabilityCache:
    """One small file per agent, version and set of client capabilities; implements `CapabilityCache`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, identity: str, fingerprint: str) -> dict[str, object] | None:
        try:
            return msgspec.json.decode(self._file(identity, fingerprint).read_bytes(), type=dict[str, object])
        except FileNotFoundError:
            return None
        except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
            log.warning("capability cache is unreadable, the agent is asked instead: %s", error)
            return None

    def put(self, identity: str, fingerprint: str, result: dict[str, object]) -> None:
        """Store capabilities; a failure is only logged, since it costs no more than time."""
        file = self._file(identity, fingerprint)
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            replace_file(file, msgspec.json.encode(result))
            self._prune()
        except OSError as error:
            log.warning("capability cache is not writable: %s", error)

    def _file(self, identity: str, fingerprint: str) -> Path:
        name = hashlib.sha256(f"{identity}\n{fingerprint}".encode()).hexdigest()[:32]
        return self._folder / f"{name}.json"

    def _prune(self) -> None:
        files = sorted(self._folder.glob("*.json"), key=lambda file: file.stat().st_mtime)
        for file in files[:-MAX_FILES]:
            file.unlink(missing_ok=True)
