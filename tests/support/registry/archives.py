"""Archives: honest ones of every kind, and each trick that an archive can play."""

from __future__ import annotations

import io
import struct
import tarfile
import zipfile
from collections.abc import Callable
from typing import Any

SCRIPT = b"#!/bin/sh\necho 1.0.0\n"


def tar(
    kind: str = "gz",
    files: dict[str, bytes] | None = None,
    add: Callable[[tarfile.TarFile], None] | None = None,
) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=f"w:{kind}") as archive:  # type: ignore[call-overload]
        for name, content in (files if files is not None else {"./agent": SCRIPT}).items():
            put(archive, name, content)
        if add is not None:
            add(archive)
    return out.getvalue()


def put(archive: tarfile.TarFile, name: str, content: bytes = b"x", mode: int = 0o755, **facts: Any) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(content), mode
    for key, value in facts.items():
        setattr(info, key, value)
    archive.addfile(info, io.BytesIO(content) if info.isreg() else None)


def special(kind: bytes, **facts: Any) -> bytes:
    return tar(add=lambda archive: put(archive, "odd", b"", type=kind, **facts))


def zipped(files: dict[str, bytes] | None = None, modes: dict[str, int] | None = None) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in (files if files is not None else {"agent": SCRIPT}).items():
            info = zipfile.ZipInfo("x")
            info.filename = name  # not cleaned, as a hostile tool would write it
            info.create_system = 3
            info.external_attr = (modes or {}).get(name, 0o100755) << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, content)
    return out.getvalue()


def zip_with_many_entries(count: int) -> bytes:
    """The end record alone, which says how many entries there are."""
    return zipped()[:-22] + b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, count, count, 46, 0, 0)


def tar_with_huge_header() -> bytes:
    """An extended header of 3 MB, which a reader would hold in memory."""

    def add(archive: tarfile.TarFile) -> None:
        info = tarfile.TarInfo("long")
        info.pax_headers = {"comment": "x" * 3_000_000}
        archive.addfile(info)

    return tar(add=add)
