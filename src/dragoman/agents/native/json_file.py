"""A small JSON file, stored across runs of the gateway; a missing or broken file counts as empty."""

from __future__ import annotations

import json
import logging
from pathlib import Path

from dragoman.atomic_file import replace_file
from dragoman.wire.json_types import JsonObject, as_object

log = logging.getLogger(__name__)


class JsonFile:
    def __init__(self, folder: Path | None, name: str) -> None:
        """Without a folder nothing is stored."""
        self._file = folder / name if folder is not None else None

    def read(self) -> JsonObject:
        try:
            return as_object(json.loads(self._file.read_text())) if self._file is not None else {}
        except (OSError, ValueError):
            return {}  # missing or unreadable

    def write(self, kept: JsonObject) -> None:
        if self._file is None:
            return
        try:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_file(self._file, json.dumps(kept, indent=1).encode() + b"\n")
        except OSError as error:
            log.warning("%s could not be saved: %s", self._file.name, error)

    def remove(self) -> None:
        if self._file is not None:
            self._file.unlink(missing_ok=True)
