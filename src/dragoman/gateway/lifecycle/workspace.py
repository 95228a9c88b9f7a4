"""From a `cwd` to the project that it belongs to (G-152)."""

from __future__ import annotations

import os
from pathlib import Path

from dragoman.config.root import find_root
from dragoman.wire.errors import invalid_params


def workspace_root(cwd: str) -> str:
    """Git top level, else the nearest marker file's folder, else `cwd` itself; the agent still gets `cwd`.

    By its real name: a client that comes by a symlink finds the same box, policy and agents.
    """
    return str(find_root(Path(cwd))) if cwd.startswith("/") else cwd


def check_cwd(value: object) -> str:
    """The validated `cwd` of a request: two real agents accept any nonsense, so nothing passes unchecked."""
    if not isinstance(value, str) or not value:
        raise invalid_params("cwd is required: the absolute path of the folder to work in", "cwd")
    if not _is_absolute(value):
        raise invalid_params(f"cwd must be an absolute path, got {value!r}", "cwd", cwd=value)
    if "\0" in value:
        raise invalid_params("cwd contains a NUL character", "cwd")
    return value


def check_cwd_exists(cwd: str) -> None:
    """For agents that run on this machine."""
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
    """A path that an agent names to a client: its working folder is not the client's, and `..` hides where it leads."""
    if not isinstance(value, str) or not value:
        raise invalid_params(f"{member} is required: an absolute path", member)
    if not _is_absolute(value):
        raise invalid_params(f"{member} must be an absolute path, got {value!r}", member, path=value)
    if "\0" in value:
        raise invalid_params(f"{member} contains a NUL character", member)
    if ".." in value.replace("\\", "/").split("/"):
        raise invalid_params(f"{member} must not contain '..', got {value!r}", member, path=value)


def _is_absolute(path: str) -> bool:
    # Windows drive paths count too: a client on Windows may talk to an agent over there.
    return path.startswith("/") or (len(path) > 2 and path[1] == ":" and path[2] in "\\/")
