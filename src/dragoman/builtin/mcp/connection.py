"""One MCP server: its connection, which runs in its own task, and its tools."""

from __future__ import annotations

import asyncio
import base64
import logging
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.types import Tool as ServerTool

from dragoman.builtin.errors import ToolError
from dragoman.builtin.tools.context import ToolContext
from dragoman.builtin.tools.tool import Intent, Json, Picture, Result, Scope, Tool, text_content
from dragoman.rpc.call import happens
from dragoman.wire.json_types import named_values

log = logging.getLogger(__name__)

CALL_SECONDS = 300.0
"""Limit of one tool call: a server that never answers must not block the turn for ever."""

MAX_TOOLS = 200
"""Tools of one server; model providers refuse more than a few hundred in all."""

CLOSE_SECONDS = 5.0

_UNFIT = re.compile(r"[^a-zA-Z0-9_-]")


class _Anything(msgspec.Struct):
    """Any arguments: the server itself validates those of its tools."""


@dataclass(frozen=True, slots=True)
class McpTool(Tool):
    """A tool of a server, with the schema that the server gave."""

    input_schema: Json = field(default_factory=dict)

    def parse(self, arguments: Mapping[str, Any]) -> Any:
        return dict(arguments)

    def schema(self) -> Json:
        return self.input_schema


class McpConnection:
    """A connection that is opened once; if it fails, `error` says why, and its tools fail with that."""

    def __init__(self, server: Json, cwd: str) -> None:
        self._server = server
        self._cwd = cwd
        self._client: Client | None = None
        self._opened = asyncio.Event()
        self._leave = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.name = str(server.get("name") or server.get("command") or server.get("url"))
        self.tools: list[McpTool] = []
        self.error: str | None = None

    async def open(self, seconds: float) -> None:
        """Connect and list the tools; a failure is stored in `error`."""
        self._task = asyncio.ensure_future(self._run())
        if not await happens(self._opened, seconds):
            self.error = f"no answer within {seconds:g} s"
            self._task.cancel()

    async def close(self) -> None:
        self._leave.set()
        if self._task is not None:
            done, _ = await asyncio.wait([self._task], timeout=CLOSE_SECONDS)
            if not done:
                self._task.cancel()

    async def _run(self) -> None:
        """Connect and disconnect in one task, as the SDK's cancel scopes require."""
        try:
            async with AsyncExitStack() as stack:
                client = await stack.enter_async_context(_connect(self._server, self._cwd))
                listed = (await client.list_tools()).tools
                self._client = client
                self.tools = [self._tool(tool) for tool in listed[:MAX_TOOLS]]
                self._opened.set()
                await self._leave.wait()
        except Exception as error:  # noqa: BLE001 (any failure of a server is reported, not raised)
            self.error = self.error or _reason(error)
            log.info("MCP server %s: %s", self.name, self.error)
        finally:
            self._client = None
            self._opened.set()

    def _tool(self, tool: ServerTool) -> McpTool:
        annotations = tool.annotations
        title = (annotations.title if annotations is not None else None) or tool.name
        words = f"{title} of the MCP server {self.name}"

        async def prepare(context: ToolContext, arguments: Json) -> Intent:
            return Intent(
                f"{self.name}: {title}",
                lambda: self._call(tool.name, arguments),
                scope=Scope(f"mcp:{self.name}:{tool.name}", words),
            )

        return McpTool(
            name=tool_name(self.name, tool.name),
            kind="other",
            effect="external",
            description=f"{tool.description or title} (from the MCP server {self.name})",
            arguments=_Anything,
            prepare=prepare,
            input_schema=dict(tool.input_schema),
            mcp={"server": self.name, "tool": tool.name},
        )

    async def _call(self, name: str, arguments: Json) -> Result:
        if self._client is None:
            raise ToolError(f"The MCP server {self.name!r} is not available: {self.error or 'it has ended'}")
        try:
            answer = await self._client.call_tool(name, arguments, read_timeout_seconds=CALL_SECONDS)
        except (MCPError, OSError, TimeoutError, RuntimeError) as error:
            raise ToolError(f"The MCP server {self.name!r} failed: {_reason(error)}") from error
        return _result(answer)


def tool_name(server: str, tool: str) -> str:
    """The tool's name for models; providers allow 64 letters, digits, `_` and `-`."""
    return _UNFIT.sub("_", f"mcp__{server}__{tool}")[:64]


@asynccontextmanager
async def _connect(server: Json, cwd: str) -> AsyncIterator[Client]:
    connect = _TRANSPORTS.get(str(server.get("type") or "stdio"))
    if connect is None:
        raise ToolError(f"servers of type {server.get('type')!r} are not supported")
    async with AsyncExitStack() as stack:
        target = await connect(server, cwd, stack)
        yield await stack.enter_async_context(Client(target))


async def _stdio(server: Json, cwd: str, stack: AsyncExitStack) -> Any:
    if not isinstance(server.get("command"), str):
        raise ToolError("it has no command")
    args = [str(arg) for arg in server.get("args") or []]
    return StdioServerParameters(
        command=server["command"], args=args, env=named_values(server.get("env")), cwd=cwd
    )


async def _http(server: Json, cwd: str, stack: AsyncExitStack) -> Any:
    client = await stack.enter_async_context(
        create_mcp_http_client(headers=named_values(server.get("headers")))
    )
    return streamable_http_client(str(server.get("url")), http_client=client)


async def _sse(server: Json, cwd: str, stack: AsyncExitStack) -> Any:
    return sse_client(str(server.get("url")), headers=named_values(server.get("headers")))


_TRANSPORTS: Mapping[str, Callable[[Json, str, AsyncExitStack], Any]] = {
    "stdio": _stdio,
    "http": _http,
    "sse": _sse,
}


def _result(answer: Any) -> Result:
    texts: list[str] = []
    content: list[Json] = []
    pictures: list[Picture] = []
    for block in answer.content:
        shown = block.model_dump(mode="json", by_alias=True, exclude_none=True)
        content.append({"type": "content", "content": shown})
        if shown.get("type") == "text":
            texts.append(shown["text"])
        elif shown.get("type") == "image":
            pictures.append(Picture(base64.b64decode(shown["data"]), shown["mimeType"]))
            texts.append("[an image]")
        else:
            texts.append(msgspec.json.encode(shown).decode())
    text = "\n".join(texts) or "[no output]"
    raw = answer.structured_content if answer.structured_content is not None else text
    return Result(text, content or [text_content(text)], raw, pictures, failed=answer.is_error)


def _reason(error: BaseException) -> str:
    """The innermost error of an exception group, in one line."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0]
