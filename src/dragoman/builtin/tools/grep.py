"""Find lines in files."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from dragoman.builtin.errors import ToolError
from dragoman.builtin.files.search import Match, SearchError, search
from dragoman.builtin.tools.context import ToolContext
from dragoman.builtin.tools.tool import Intent, Result, Tool

MAX_MATCHES = 200
MAX_LINE = 300


class Arguments(msgspec.Struct, forbid_unknown_fields=True):
    pattern: Annotated[str, Meta(min_length=1, description="A regular expression.")]
    path: Annotated[str, Meta(description="The folder to look in; by default the working folder.")] = "."
    glob: Annotated[str | None, Meta(description="Only files whose path matches, such as `*.py`.")] = None
    ignore_case: bool = False


async def prepare(context: ToolContext, arguments: Arguments) -> Intent:
    path = context.workspace.folder(arguments.path)

    async def act() -> Result:
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
    Arguments,
    prepare,
)
