"""The secret of an instance: made at the first start, kept for the user alone, the same after a restart."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from dragoman.config.errors import ConfigError

PRIVATE = 0o600


def instance_token(file: Path) -> str:
    """The token in `file`; a new one if there is none yet."""
    try:
        token = file.read_text().strip()
        if token:
            if file.stat().st_mode & 0o077:
                file.chmod(PRIVATE)
            return token
    except FileNotFoundError:
        pass
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: the token cannot be read: {error}") from error
    return _make(file)


def _make(file: Path) -> str:
    """Written beside and renamed, so that nobody ever reads half a token."""
    token = secrets.token_urlsafe(32)
    beside = file.with_name(f"{file.name}.{os.getpid()}")
    try:
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE)
        with os.fdopen(descriptor, "w") as out:
            out.write(token + "\n")
        beside.replace(file)
    except OSError as error:
        raise ConfigError(f"{file}: the token cannot be stored: {error.strerror}") from error
    return token
