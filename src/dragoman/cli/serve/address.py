"""The file by which commands find a running `dragoman serve`."""

from __future__ import annotations

import os
from dataclasses import dataclass

import msgspec

import dragoman
from dragoman.config.paths import Paths

ADDRESS_FILE = "serve.json"


@dataclass(frozen=True, slots=True)
class ServeAddress:
    """The URL (without the token) and process id of a running `serve`, in a file beside its socket."""

    url: str
    pid: int
    version: str = ""
    """Of its program; empty if it is too old to say."""


def write_address(paths: Paths, url: str) -> None:
    file = paths.runtime_dir / ADDRESS_FILE
    file.write_bytes(msgspec.json.encode(ServeAddress(url, os.getpid(), dragoman.__version__)))


def read_address(paths: Paths) -> ServeAddress | None:
    """The address of the running `serve`; None if its process has ended, as a killed one leaves the file behind."""
    try:
        found = msgspec.json.decode((paths.runtime_dir / ADDRESS_FILE).read_bytes(), type=ServeAddress)
        os.kill(found.pid, 0)
    except (OSError, msgspec.DecodeError, msgspec.ValidationError):
        return None
    return found


def remove_address(paths: Paths) -> None:
    (paths.runtime_dir / ADDRESS_FILE).unlink(missing_ok=True)
