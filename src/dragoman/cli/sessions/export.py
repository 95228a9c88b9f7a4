"""Writes a session to a file, or to stdout."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import BinaryIO, Literal, TypeAlias

from dragoman.config.errors import ConfigError
from dragoman.gateway.delivery.export import as_markdown, as_ndjson
from dragoman.gateway.ports.store import SessionRecord, Store

Format: TypeAlias = Literal["ndjson", "markdown", "md"]


async def export(store: Store, record: SessionRecord, format: Format, file: Path | None) -> None:
    """Write the session to stdout, or to `file`, which appears when it is complete."""
    pieces = as_ndjson(store, record) if format == "ndjson" else as_markdown(store, record)
    if file is None:
        await _write(pieces, sys.stdout.buffer)
        return
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        with draft.open("wb") as target:
            await _write(pieces, target)
        draft.replace(file)
    except OSError as error:
        raise ConfigError(f"cannot write {file}: {error.strerror}") from error
    finally:
        draft.unlink(missing_ok=True)


async def _write(pieces: AsyncIterator[bytes], target: BinaryIO) -> None:
    async for piece in pieces:
        target.write(piece)
    target.flush()
