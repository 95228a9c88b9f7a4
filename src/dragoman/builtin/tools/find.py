"""Look for files and in them: list a folder, find paths by pattern, find lines."""

from __future__ import annotations

import asyncio
import os
from typing import Annotated

import msgspec
from msgspec import Meta

from dragoman.builtin.errors import ToolError
from dragoman.builtin.files.search import Match, SearchError, glob_files, search
from dragoman.builtin.tools.context import ToolContext
from dragoman.builtin.tools.tool import Intent, Result, Tool

MAX_MATCHES = 200
MAX_LINE = 300


class GrepArguments(msgspec.Struct, forbid_unknown_fields=True):
    pattern: Annotated[str, Meta(min_length=1, description="A regular expression.")]
    path: Annotated[str, Meta(description="The folder to look in; by default the working folder.")] = "."
    glob: Annotated[str | None, Meta(description="Only files whose path matches, such as `*.py`.")] = None
    ignore_case: bool = False


async def prepare_grep(context: ToolContext, arguments: GrepArguments) -> Intent:
    path = context.workspace.folder(arguments.path)

    async def act() -> Result:
        context.workspace.check_folder(path)
        try:
            found = await search(
                path, arguments.pattern, arguments.glob, arguments.ignore_case, MAX_MATCHES + 1
            )
        except SearchError as error:
            raise ToolError(str(error)) from error
        if not found:
            return Result("No match.", output=[])
        more = f"\n[more than {MAX_MATCHES} matches; narrow the search]" if len(found) > MAX_MATCHES else ""
        lines = (_line(match) for match in found[:MAX_MATCHES])
        return Result("\n".join(lines) + more, output={"matches": min(len(found), MAX_MATCHES)})

    return Intent(f"Search for {arguments.pattern}", act, [{"path": path}])


def _line(match: Match) -> str:
    text = match.text if len(match.text) <= MAX_LINE else match.text[:MAX_LINE] + "…"
    return f"{match.path}:{match.line}: {text}"


grep = Tool(
    "grep",
    "search",
    "read",
    "Find the lines of text files that match a regular expression. Ignored and binary files are left out.",
    GrepArguments,
    prepare_grep,
)


MAX_FILES = 500


class GlobArguments(msgspec.Struct, forbid_unknown_fields=True):
    pattern: Annotated[str, Meta(description="Such as `*.py`, `src/**/*.ts` or `**/test_*`.")]
    path: Annotated[str, Meta(description="The folder to look in; by default the working folder.")] = "."


async def prepare_glob(context: ToolContext, arguments: GlobArguments) -> Intent:
    path = context.workspace.folder(arguments.path)

    async def act() -> Result:
        context.workspace.check_folder(path)
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
    GlobArguments,
    prepare_glob,
)


MAX_ENTRIES = 1000


class ListArguments(msgspec.Struct, forbid_unknown_fields=True):
    path: Annotated[str, Meta(description="The folder; by default the working folder.")] = "."


async def prepare_list(context: ToolContext, arguments: ListArguments) -> Intent:
    path = context.workspace.folder(arguments.path)

    async def act() -> Result:
        context.workspace.check_folder(path)
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


list_folder = Tool("list", "read", "read", "List the entries of a folder.", ListArguments, prepare_list)
