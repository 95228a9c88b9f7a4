"""The URL (without the token) and process id of a running `dragoman serve`, in a file beside its socket."""

from __future__ import annotations

import os
from dataclasses import dataclass

import msgspec

from dragoman.config.paths import Paths

NAME = "serve.json"


@dataclass(frozen=True, slots=True)
class ServeAddress:
    url: str
    pid: int


def write_address(paths: Paths, url: str) -> None:
    file = paths.runtime_dir / NAME
    file.write_bytes(msgspec.json.encode(ServeAddress(url, os.getpid())))


def read_address(paths: Paths) -> ServeAddress | None:
    """The address of the running `serve`; None if its process has ended, as a killed one leaves the file behind."""
    try:
        found = msgspec.json.decode((paths.runtime_dir / NAME).read_bytes(), type=ServeAddress)
        os.kill(found.pid, 0)
    except (OSError, msgspec.DecodeError, msgspec.ValidationError):
        return None
    return found


def remove_address(paths: Paths) -> None:
    (paths.runtime_dir / NAME).unlink(missing_ok=True)
