"""Hashes of what was installed before, so that the same version cannot become something else unnoticed."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec

from dragoman.atomic_file import locked, replace_file
from dragoman.config.errors import ConfigError
from dragoman.config.files.regular_file import read_regular
from dragoman.registry.errors import RegistryError

MAX_BYTES = 16 * 1024 * 1024
LOCK_SECONDS = 30.0
"""The file is locked while it is written, which takes a moment."""


class Pin(msgspec.Struct, frozen=True):
    hash: str
    seen: str
    """When it was seen first: ISO 8601, UTC."""


class Pins:
    """The file `pins.json`; it stays when an agent is uninstalled."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def check(self, key: str, digest: str, name: str) -> None:
        """Raise `RegistryError` if `key` had another hash before."""
        before = self._read().get(key)
        if before is not None and before.hash != digest:
            raise RegistryError(
                f"{key} is not what it was on {before.seen}: its hash is {digest}, it was {before.hash}. "
                "It was replaced without a new version, so it is not installed. If you know why, "
                f"`dragoman agents install {name} --repin` takes the new one"
            )

    def keep(self, key: str, digest: str) -> None:
        with locked(self._file.with_name(".pins.lock"), LOCK_SECONDS):
            pins = self._read()
            before = pins.get(key)
            if before is None or before.hash != digest:
                pins[key] = Pin(digest, time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()))
                replace_file(self._file, msgspec.json.format(msgspec.json.encode(pins)))

    def _read(self) -> dict[str, Pin]:
        try:
            content = read_regular(self._file, MAX_BYTES)
            return msgspec.json.decode(content, type=dict[str, Pin]) if content is not None else {}
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise ConfigError(
                f"{self._file}: the hashes of installed agents are damaged: {error}; "
                "remove the file to begin anew with what is seen next"
            ) from error
