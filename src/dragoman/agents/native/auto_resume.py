"""The user's auto-resume setting per workspace, stored across runs of the gateway."""

from __future__ import annotations

from pathlib import Path

from dragoman.agents.json_types import as_object
from dragoman.agents.native.json_file import JsonFile

FILE = "auto-resume.json"


class AutoResume:
    """By workspace: whether a new session of an agent continues the last one."""

    def __init__(self, folder: Path | None, agent: str, default: bool) -> None:
        self._kept = JsonFile(folder, FILE)
        self._agent = agent
        self._default = default

    def get(self, cwd: str) -> bool:
        return bool(as_object(self._kept.read().get(self._agent)).get(cwd, self._default))

    def set(self, cwd: str, on: bool) -> None:
        kept = self._kept.read()
        kept[self._agent] = {**as_object(kept.get(self._agent)), cwd: on}
        self._kept.write(kept)
