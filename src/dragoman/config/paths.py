"""Where Dragoman stores its files: in the XDG directories, or all below `DRAGOMAN_HOME`."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dragoman.config.errors import ConfigError
from dragoman.config.files.ownership import check_own

PRIVATE_DIR = 0o700
ADMINISTRATOR = Path("/etc/dragoman/policy.toml")
"""Rules of the machine's administrator. `DRAGOMAN_HOME` does not move it: a user who sets that variable must not choose
these rules."""


@dataclass(frozen=True, slots=True)
class Paths:
    """Every path that Dragoman uses; only `ensure` creates directories."""

    config_file: Path
    state_dir: Path
    runtime_dir: Path
    cache_dir: Path

    @property
    def database(self) -> Path:
        return self.state_dir / "dragoman.db"

    @property
    def audit_dir(self) -> Path:
        return self.state_dir / "audit"

    @property
    def log_dir(self) -> Path:
        return self.state_dir / "logs"

    @property
    def trust_file(self) -> Path:
        return self.state_dir / "trust.json"

    @property
    def tokens_file(self) -> Path:
        return self.state_dir / "tokens.json"

    @property
    def logins_file(self) -> Path:
        return self.state_dir / "logins.json"

    @property
    def agents_dir(self) -> Path:
        return self.state_dir / "agents"

    @property
    def installed_file(self) -> Path:
        return self.agents_dir / "installed.json"

    @property
    def socket(self) -> Path:
        return self.runtime_dir / "dragoman.sock"

    @property
    def token_file(self) -> Path:
        return self.runtime_dir / "token"

    def check(self) -> None:
        """Raise `ConfigError` if another user owns one of the folders or may write to it."""
        for folder in {self.config_file.parent, self.state_dir, self.runtime_dir, self.cache_dir}:
            check_own(folder)

    def ensure(self, directory: Path) -> Path:
        """Create `directory` and its missing parents, accessible to the user only."""
        missing = []
        part = directory
        while not part.is_dir():
            missing.append(part)
            part = part.parent
        # One by one: `parents=True` would give the upper ones the default mode.
        for part in reversed(missing):
            try:
                part.mkdir(mode=PRIVATE_DIR, exist_ok=True)
            except OSError as error:
                raise ConfigError(f"cannot make the directory {part}: {error.strerror}") from error
        self.check()  # also when another process made it first
        return directory


def find_paths(environ: Mapping[str, str] | None = None, platform: str = sys.platform) -> Paths:
    """The paths for this user, by the environment."""
    env = os.environ if environ is None else environ
    if moved := env.get("DRAGOMAN_HOME"):
        home = Path(os.path.abspath(_expand(moved, env)))  # noqa: PTH100 (resolve() follows symlinks)
        return Paths(home / "config.toml", home, home / "run", home / "cache")
    config = _xdg(env, "XDG_CONFIG_HOME") or _home(env) / ".config"
    state = _xdg(env, "XDG_STATE_HOME") or _home(env) / _STATE.get(platform, ".local/state")
    cache = _xdg(env, "XDG_CACHE_HOME") or _home(env) / _CACHE.get(platform, ".cache")
    runtime = _xdg(env, "XDG_RUNTIME_DIR") or _run_user()
    return Paths(
        config_file=config / "dragoman" / "config.toml",
        state_dir=state / "dragoman",
        runtime_dir=runtime / "dragoman" if runtime is not None else state / "dragoman" / "run",
        cache_dir=cache / "dragoman",
    )


_STATE = {"darwin": "Library/Application Support"}
_CACHE = {"darwin": "Library/Caches"}


def _xdg(env: Mapping[str, str], name: str) -> Path | None:
    value = env.get(name, "")
    # The XDG specification says to ignore relative ones.
    return Path(value) if value.startswith("/") else None


def _run_user() -> Path | None:
    """The user's runtime directory where `XDG_RUNTIME_DIR` is not passed on, as by some desktops."""
    directory = Path(f"/run/user/{os.getuid()}")
    return directory if os.access(directory, os.W_OK) else None


def _home(env: Mapping[str, str]) -> Path:
    if (home := env.get("HOME", "")).startswith("/"):
        return Path(home)
    try:
        return Path.home()
    except RuntimeError as error:
        raise ConfigError("there is no home directory: set HOME or DRAGOMAN_HOME") from error


def _expand(path: str, env: Mapping[str, str]) -> Path:
    return _home(env) / path[2:] if path.startswith("~/") else Path(path)
