"""Finds the project that a `cwd` belongs to, and checks the paths in requests (G-152)."""

from __future__ import annotations

import os
from pathlib import Path

from dragoman.config.root import find_root
from dragoman.wire.errors import invalid_params


def workspace_root(cwd: str) -> str:
    """Git top level, else the nearest marker file's folder, else `cwd` itself; the agent still gets `cwd`.

    Symlinks are resolved, so that a client that uses one gets the same sandbox, policy and agents.
    """
    return str(find_root(Path(cwd))) if cwd.startswith("/") else cwd


def check_cwd(value: object) -> str:
    """Check the `cwd` of a request and return it; two real agents accept any value, so it is checked here."""
    if not isinstance(value, str) or not value:
        raise invalid_params("cwd is required: the absolute path of the folder to work in", "cwd")
    if not _is_absolute(value):
        raise invalid_params(f"cwd must be an absolute path, got {value!r}", "cwd", cwd=value)
    if "\0" in value:
        raise invalid_params("cwd contains a NUL character", "cwd")
    return value


def check_cwd_exists(cwd: str) -> None:
    """Raise if the folder does not exist; for agents that run on this machine."""
    if not os.path.isdir(cwd):  # noqa: PTH112 (Path.is_dir raises for a path that is too long)
        raise invalid_params(f"cwd does not exist or is not a folder: {cwd}", "cwd", cwd=cwd)


def check_directories(value: object) -> list[str]:
    """`additionalDirectories`: absent, null or a list of absolute paths."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise invalid_params(
            "additionalDirectories must be a list of absolute paths", "additionalDirectories"
        )
    for path in value:
        if not isinstance(path, str) or not _is_absolute(path):
            raise invalid_params(
                f"additionalDirectories must be absolute paths, got {path!r}", "additionalDirectories"
            )
        if "\0" in path:
            raise invalid_params("additionalDirectories contain a NUL character", "additionalDirectories")
    return list(value)


def check_agent_path(value: object, member: str) -> None:
    """Check a path from an agent to a client: absolute, since their working folders differ, and without `..`."""
    if not isinstance(value, str) or not value:
        raise invalid_params(f"{member} is required: an absolute path", member)
    if not _is_absolute(value):
        raise invalid_params(f"{member} must be an absolute path, got {value!r}", member, path=value)
    if "\0" in value:
        raise invalid_params(f"{member} contains a NUL character", member)
    if ".." in value.replace("\\", "/").split("/"):
        raise invalid_params(f"{member} must not contain '..', got {value!r}", member, path=value)


def _is_absolute(path: str) -> bool:
    # Windows drive paths count too: client and agent may both run on Windows.
    return path.startswith("/") or (len(path) > 2 and path[1] == ":" and path[2] in "\\/")
