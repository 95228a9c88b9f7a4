"""Files of a project that we read unasked: its instructions and its commands.

A repository may be a stranger's. What is read of it goes to a model, so a link out of the project is not followed (it
could lead to a key), and what is no regular file is not opened (a FIFO would block, a device would never end).
"""

from __future__ import annotations

import logging
import os
from pathlib import Path

from dragoman.services.roots import Roots
from dragoman.wire.errors import NOT_FOUND, RpcError

log = logging.getLogger(__name__)

ANYWHERE = Path("/")
"""The root of the user's own files, which may well be links."""


def read_start(file: Path, root: Path, limit: int) -> bytes:
    """The first `limit` bytes of a file that really lies below `root`; nothing, with a warning, of anything else."""
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
