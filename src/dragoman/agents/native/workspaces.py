"""What people chose for a workspace, kept from one run of the gateway to the next."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path

from dragoman.agents.json_types import as_object

log = logging.getLogger(__name__)

FILE = "auto-resume.json"


class AutoResume:
    """By workspace: whether a new session of an agent begins where the last one ended."""

    def __init__(self, folder: Path | None, agent: str, default: bool) -> None:
        self._file = folder / FILE if folder is not None else None
        self._agent = agent
        self._default = default

    def get(self, cwd: str) -> bool:
        return bool(as_object(self._read().get(self._agent)).get(cwd, self._default))

    def set(self, cwd: str, on: bool) -> None:
        if self._file is None:
            return
        kept = self._read()
        kept[self._agent] = {**as_object(kept.get(self._agent)), cwd: on}
        half = self._file.with_suffix(f".{os.getpid()}")
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            half.write_text(json.dumps(kept, indent=1) + "\n")
            half.replace(self._file)
        except OSError as error:
            log.warning("the choice holds for this session only: %s", error)

    def _read(self) -> dict[str, object]:
        try:
            return as_object(json.loads(self._file.read_text())) if self._file is not None else {}
        except (OSError, ValueError):
            return {}  # none yet, or not ours to understand: the default holds
