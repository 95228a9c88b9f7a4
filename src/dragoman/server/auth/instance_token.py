"""The instance's token: created at the first start, readable by this user alone, the same at later starts."""

from __future__ import annotations

import secrets
from pathlib import Path

from dragoman.atomic_file import replace_file
from dragoman.config.errors import ConfigError

PRIVATE = 0o600


def instance_token(file: Path) -> str:
    """The token in `file`, created if there is none yet."""
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
    token = secrets.token_urlsafe(32)
    try:
        replace_file(file, token.encode() + b"\n")
    except OSError as error:
        raise ConfigError(f"{file}: the token cannot be stored: {error.strerror}") from error
    return token
