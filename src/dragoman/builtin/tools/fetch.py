"""Fetch a page."""

from __future__ import annotations

import asyncio
from typing import Annotated
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from dragoman.builtin.errors import ToolError
from dragoman.builtin.files.web import FetchError, get_text
from dragoman.builtin.tools.context import ToolContext
from dragoman.builtin.tools.tool import Intent, Result, Scope, Tool

MAX_CHARACTERS = 100_000


class Arguments(msgspec.Struct, forbid_unknown_fields=True):
    url: Annotated[str, Meta(description="An http or https address.")]


async def prepare(context: ToolContext, arguments: Arguments) -> Intent:
    parts = urlsplit(arguments.url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ToolError("Only http and https addresses can be fetched.")

    async def act() -> Result:
        try:
            text = await asyncio.to_thread(get_text, arguments.url)
        except FetchError as error:
            raise ToolError(str(error)) from error
        if len(text) > MAX_CHARACTERS:
            text = text[:MAX_CHARACTERS] + f"\n[cut after {MAX_CHARACTERS} characters]"
        return Result(text or "[empty page]", output={"characters": len(text)})

    host = parts.netloc.lower()
    return Intent(f"Fetch {arguments.url}", act, scope=Scope(f"fetch:{host}", f"pages of {host}"))


fetch = Tool(
    "fetch",
    "fetch",
    "fetch",
    "Fetch a page over http or https and return it as text.",
    Arguments,
    prepare,
)
