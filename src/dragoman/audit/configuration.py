"""Records which configuration files were changed since they were last looked at, by whatever program.

The hashes that were seen last stand in `configuration.json` beside the chains. That file is a note for the next look
and proves nothing: every `gateway_started` has the hashes too.
"""

from __future__ import annotations

import pwd
from collections.abc import Callable, Iterable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from dragoman.atomic_file import locked, replace_file
from dragoman.audit.folder import open_regular
from dragoman.config.errors import ConfigError
from dragoman.config.files.regular_file import read_regular
from dragoman.wire.timestamps import timestamp

KNOWN = "configuration.json"
LOCK = "configuration.lock"
LOCK_SECONDS = 2.0
"""Others hold it for milliseconds. One that holds it for ever would keep the audit from being signed."""
MOST_FILES = 2000
"""Files whose hashes are kept; the one seen longest ago is dropped."""
LONGEST = 16 << 20

Tell = Callable[[str, dict[str, Any]], None]
_known = msgspec.json.Decoder(dict[str, str])


def hash_of(file: Path) -> str | None:
    """The SHA-256 of a file; None if it is not there or cannot be read."""
    try:
        content = read_regular(file, LONGEST)
    except (OSError, ConfigError):
        return None
    return None if content is None else sha256(content).hexdigest()


def describe(file: Path) -> dict[str, Any]:
    """A file with its hash, its owner and the time of its last change."""
    facts: dict[str, Any] = {"path": str(file), "sha256": hash_of(file)}
    with suppress(OSError):
        state = file.stat()
        facts["modified"] = timestamp(state.st_mtime_ns // 1_000_000)
        facts["owner"] = _name_of(state.st_uid)
    return facts


def record_changes(
    folder: Path, files: Iterable[Path], tell: Tell, by: str | None = None, *, unknown: bool = False
) -> None:
    """Record the files that differ from what was seen last.

    `by` is who changed them, if that is known. Those never seen are recorded only with `unknown`.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with locked(folder / LOCK, LOCK_SECONDS):
        known = _read(folder)
        seen = dict(known)
        for file in files:
            name, hash = str(file), hash_of(file)
            if known.get(name) == hash:
                continue
            if name in known or unknown:
                facts = describe(file)
                facts["before"], facts["after"] = known.get(name), facts.pop("sha256")
                tell("configuration_changed", {**facts, "by": by or "file"})
            seen.pop(name, None)
            if hash is not None:
                seen[name] = hash
        if seen != known:
            kept = dict(list(seen.items())[-MOST_FILES:])
            replace_file(folder / KNOWN, msgspec.json.encode(kept))


def _read(folder: Path) -> dict[str, str]:
    with suppress(OSError, msgspec.MsgspecError), open_regular(folder / KNOWN) as file:
        return _known.decode(file.read(LONGEST))
    return {}


def _name_of(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return str(user)
