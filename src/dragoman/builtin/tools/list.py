"""List a folder."""

from __future__ import annotations

import asyncio
import os
from typing import Annotated

import msgspec
from msgspec import Meta

from dragoman.builtin.errors import ToolError
from dragoman.builtin.tools.context import ToolContext
from dragoman.builtin.tools.tool import Intent, Result, Tool

MAX_ENTRIES = 1000


class Arguments(msgspec.Struct, forbid_unknown_fields=True):
    path: Annotated[str, Meta(description="The folder; by default the working folder.")] = "."


async def prepare(context: ToolContext, arguments: Arguments) -> Intent:
    path = context.workspace.folder(arguments.path)

    async def act() -> Result:
        try:
            entries = await asyncio.to_thread(_entries, path)
        except OSError as error:
            raise ToolError(f"{context.workspace.show(path)}: {error.strerror}.") from error
        more = len(entries) - MAX_ENTRIES
        text = "\n".join(entries[:MAX_ENTRIES]) + (f"\n[{more} more]" if more > 0 else "")
        return Result(text or "[empty folder]")

    return Intent(f"List {context.workspace.show(path)}", act, [{"path": path}])


def _entries(path: str) -> list[str]:
    """Folders first, with a slash; files with their size."""
    folders, files = [], []
    with os.scandir(path) as found:
        for entry in found:
            if entry.is_dir(follow_symlinks=False):
                folders.append(f"{entry.name}/")
            else:
                files.append(f"{entry.name}\t{entry.stat(follow_symlinks=False).st_size}")
    return sorted(folders) + sorted(files)


list_folder = Tool("list", "read", "read", "List the entries of a folder.", Arguments, prepare)
