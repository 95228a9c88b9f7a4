"""Find files by the pattern of their path."""

from __future__ import annotations

import asyncio
from typing import Annotated

import msgspec
from msgspec import Meta

from dragoman.builtin.files.search import glob_files
from dragoman.builtin.tools.context import ToolContext
from dragoman.builtin.tools.tool import Intent, Result, Tool

MAX_FILES = 500


class Arguments(msgspec.Struct, forbid_unknown_fields=True):
    pattern: Annotated[str, Meta(description="Such as `*.py`, `src/**/*.ts` or `**/test_*`.")]
    path: Annotated[str, Meta(description="The folder to look in; by default the working folder.")] = "."


async def prepare(context: ToolContext, arguments: Arguments) -> Intent:
    path = context.workspace.folder(arguments.path)

    async def act() -> Result:
        found = await asyncio.to_thread(glob_files, path, arguments.pattern, MAX_FILES + 1)
        if not found:
            return Result(f"No file matches {arguments.pattern}.")
        more = "\n[more files match; use a narrower pattern]" if len(found) > MAX_FILES else ""
        return Result("\n".join(found[:MAX_FILES]) + more)

    return Intent(f"Find {arguments.pattern}", act, [{"path": path}])


glob = Tool(
    "glob",
    "search",
    "read",
    "Find files by the pattern of their path, the last changed first. Ignored files are left out.",
    Arguments,
    prepare,
)
