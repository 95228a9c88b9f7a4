"""Restricts a workspace's configuration file until the user trusts it.

A cloned repository must not be able to run programs, leave its sandbox or grant itself permissions: keys that need
trust are ignored, with a warning, until the user runs `dragoman config trust` there.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dragoman.atomic_file import replace_file
from dragoman.config.errors import ConfigError
from dragoman.config.files import toml
from dragoman.config.files.regular_file import read_regular
from dragoman.config.paths import Paths

MAX_TRUST_BYTES = 16 * 1024 * 1024
"""Size limit of the list of trusted files: enough for tens of thousands."""
WITHOUT_TRUST = ("default_agent", "limits", "policy", "protocol")
"""The keys that an untrusted workspace may set, and only to what is at least as narrow (`narrow.py`). All others can
run programs, open ports, write files, widen what agents access or, like `sessions.retain_days`, delete user data."""


def restrict(data: dict[str, Any], file: Path, trusted: bool) -> tuple[dict[str, Any], list[str]]:
    """The accepted settings of a workspace file, and a warning if some are ignored.

    The file's policy may only narrow: `policy.rules` becomes `policy.narrow`; `allow` is an error even when trusted.
    """
    refused = [] if trusted else _untrusted(data)
    warnings = []
    if refused:
        named = [name for key in refused for name in _spelled_out(key, data[key])]
        warnings.append(
            f"{file}: ignored {', '.join(named)}, which a workspace may set only once you trust it: "
            f"read the file, then run `dragoman config trust` in {file.parent.parent}"
        )
    return _narrowed({key: value for key, value in data.items() if key not in refused}, file), warnings


def too_wide(file: Path, data: dict[str, Any], wider: Mapping[tuple[str, ...], str]) -> list[str]:
    """A warning for each key of an untrusted file that would allow more than the user's own settings."""
    return [
        f"{file}: ignored {'.'.join(path)} = {toml.value(_value(data, path))}, which a workspace may set only once you "
        f"trust it: {why}. Read the file, then run `dragoman config trust` in {file.parent.parent}"
        for path, why in wider.items()
    ]


def without(data: dict[str, Any], paths: Iterable[tuple[str, ...]]) -> dict[str, Any]:
    """The settings without the keys at `paths`."""
    kept = {key: dict(value) if isinstance(value, dict) else value for key, value in data.items()}
    for *above, key in paths:
        _value(kept, above).pop(key, None)
    return kept


def _value(data: dict[str, Any], path: Sequence[str]) -> Any:
    return functools.reduce(lambda table, key: table[key], path, data)


def _untrusted(data: dict[str, Any]) -> list[str]:
    refused = [key for key in data if key not in WITHOUT_TRUST]
    agents = data.get("agents")
    chosen = data.get("default_agent")
    if isinstance(agents, dict) and isinstance(chosen, str) and chosen in agents:
        refused.append("default_agent")  # it names an agent that is ignored
    return refused


def _spelled_out(key: str, value: Any) -> list[str]:
    """The full names of the ignored keys below `key`: `agents.mine.command`."""
    if not isinstance(value, dict) or not value or key.endswith(".env"):
        return [key]
    return [name for inner, below in value.items() for name in _spelled_out(f"{key}.{inner}", below)]


def _narrowed(data: dict[str, Any], file: Path) -> dict[str, Any]:
    policy = data.get("policy")
    if not isinstance(policy, dict):
        return data
    if "remember" in policy:
        raise ConfigError(
            f"{file}: policy.remember: not for a workspace, which must not choose who remembers your answers: "
            "set it in your own configuration"
        )
    if "require" in policy:
        raise ConfigError(
            f"{file}: policy.require: not for a workspace, which must not choose which agents you may use: "
            "set it in your own configuration"
        )
    for table in ("rules", "narrow"):
        rules = policy.get(table, [])
        for index, rule in enumerate(rules if isinstance(rules, list) else []):
            if isinstance(rule, dict) and rule.get("decision") == "allow":
                raise ConfigError(
                    f'{file}: policy.{table}[{index}].decision: expected "deny" or "ask", got "allow": '
                    "a workspace may narrow your policy but never widen it"
                )
    if not isinstance(policy.get("rules", []), list) or not isinstance(policy.get("narrow", []), list):
        return data  # the type check reports it more clearly
    narrow = [*policy.get("rules", []), *policy.get("narrow", [])]
    others = {key: value for key, value in policy.items() if key not in ("rules", "narrow")}
    return {**data, "policy": {**others, "narrow": narrow}}


class Trust:
    """The workspace files that the user trusts, by path and hash: a changed file is no longer trusted.

    The path is that in the workspace's folder, not the target of a symlink: one workspace may link to the trusted file
    of another, and the `./agent.sh` that this file names would then be a script of the first.
    """

    def __init__(self, paths: Paths) -> None:
        self._paths = paths

    def covers(self, file: Path, content: bytes) -> bool:
        return self._read().get(_place(file)) == _digest(content)

    def grant(self, file: Path, content: bytes) -> None:
        self._write({**self._read(), _place(file): _digest(content)})

    def revoke(self, file: Path) -> bool:
        """Remove the trust in a file; returns whether there was any."""
        known = self._read()
        found = known.pop(_place(file), None) is not None
        if found:
            self._write(known)
        return found

    def _read(self) -> dict[str, str]:
        content = read_regular(self._paths.trust_file, MAX_TRUST_BYTES)
        try:
            known = json.loads(content) if content is not None else {}
        except ValueError as error:
            raise ConfigError(f"{self._paths.trust_file}: cannot be read: {error}") from error
        return known if isinstance(known, dict) else {}

    def _write(self, known: dict[str, str]) -> None:
        self._paths.ensure(self._paths.state_dir)
        replace_file(self._paths.trust_file, json.dumps(known, indent=1).encode())


def _place(file: Path) -> str:
    return os.path.join(os.path.realpath(file.parent.parent), file.parent.name, file.name)  # noqa: PTH118


def _digest(content: bytes) -> str:
    import hashlib  # OpenSSL takes a while to load, and few workspaces have a file

    return hashlib.sha256(content).hexdigest()
