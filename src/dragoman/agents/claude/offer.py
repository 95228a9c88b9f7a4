"""The models that `claude` offered when it was last started in the same way.

`claude` takes a second to report them. A new session is answered at once with the last known ones, which are corrected
when the present ones arrive (`Session.start`).
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
"""Most stored offers, one per way to start `claude`; the newest stay."""
DECISIVE = ("CLAUDE_CONFIG_DIR", "HOME", "ANTHROPIC_BASE_URL", "ANTHROPIC_MODEL", "CLAUDE_CODE_USE_BEDROCK",
            "CLAUDE_CODE_USE_VERTEX")  # fmt: skip
"""Variables that select the account and the provider, and so the models."""


class Offer:
    def __init__(self, folder: Path | None, command: Sequence[str], environ: Mapping[str, str]) -> None:
        self._kept = JsonFile(folder, FILE)
        self._way = [*command, *(environ.get(name, "") for name in DECISIVE)]
        self._key: str | None = None

    def is_of(self, version: str) -> None:
        """Set the version, since another one may offer other models."""
        self._key = hashlib.sha256(json.dumps([*self._way, version]).encode()).hexdigest()

    def get(self) -> JsonObject | None:
        """The stored part of the answer to `initialize`; None if there is none."""
        return as_object(self._kept.read().get(self._key or "")) or None

    def keep(self, initialized: JsonObject) -> None:
        models = initialized.get("models")
        if self._key is None or not models or self.get() == {"models": models}:
            return
        others = {key: value for key, value in self._kept.read().items() if key != self._key}
        newest = dict(list(others.items())[-(MOST - 1) :])
        self._kept.write({**newest, self._key: {"models": models}})

    def forget(self) -> None:
        """Drop the offer after a failed start: the next session waits for the start and reports its error."""
        self._kept.write({key: value for key, value in self._kept.read().items() if key != self._key})
