"""Reads a project's files without a permission question: its instructions and commands.

The project is untrusted, and its files are sent to a model. So a symlink out of the project is not followed (it could
lead to a key), and only a regular file is opened (a FIFO would block, a device would never end).
"""

from __future__ import annotations

import logging
import os
from pathlib import Path

from dragoman.services.roots import Roots
from dragoman.wire.errors import NOT_FOUND, RpcError

log = logging.getLogger(__name__)

ANYWHERE = Path("/")
"""The root for the user's own files, which may be symlinks to anywhere."""


def read_start(file: Path, root: Path, limit: int) -> bytes:
    """The first `limit` bytes of a file below `root`; empty if it is missing or, with a warning, not allowed."""
    try:
        with (
            Roots([str(root)]).place(str(file)) as place,
            os.fdopen(place.open(os.O_RDONLY), "rb") as stream,
        ):
            return stream.read(limit)
    except RpcError as error:
        if error.code != NOT_FOUND:
            log.warning("%s is not used: %s", file, error.message)
        return b""
