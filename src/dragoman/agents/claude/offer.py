"""What `claude` offered when it was last started in the same way.

It takes a second to tell us. A new session is answered at once with what it said last time, and corrected when it has
told us again (`Session.start`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from dragoman.agents.json_types import JsonObject, as_object
from dragoman.agents.native.json_file import JsonFile

FILE = "claude-offers.json"
MOST = 16
"""Ways to start it that are remembered, the newest ones."""
DECISIVE = ("CLAUDE_CONFIG_DIR", "HOME", "ANTHROPIC_BASE_URL", "ANTHROPIC_MODEL", "CLAUDE_CODE_USE_BEDROCK",
            "CLAUDE_CODE_USE_VERTEX")  # fmt: skip
"""Who is logged in, and where: that decides which models there are."""


class Offer:
    def __init__(self, folder: Path | None, command: Sequence[str], environ: Mapping[str, str]) -> None:
        self._kept = JsonFile(folder, FILE)
        self._way = [*command, *(environ.get(name, "") for name in DECISIVE)]
        self._key: str | None = None

    def is_of(self, version: str) -> None:
        """Another version may offer something else."""
        self._key = hashlib.sha256(json.dumps([*self._way, version]).encode()).hexdigest()

    def get(self) -> JsonObject | None:
        """As `claude` answered `initialize`, as far as it is needed; None if that is not known."""
        return as_object(self._kept.read().get(self._key or "")) or None

    def keep(self, initialized: JsonObject) -> None:
        models = initialized.get("models")
        if self._key is None or not models or self.get() == {"models": models}:
            return
        others = {key: value for key, value in self._kept.read().items() if key != self._key}
        newest = dict(list(others.items())[-(MOST - 1) :])
        self._kept.write({**newest, self._key: {"models": models}})

    def forget(self) -> None:
        """It does not start any more: the next session waits and sees why."""
        self._kept.write({key: value for key, value in self._kept.read().items() if key != self._key})
