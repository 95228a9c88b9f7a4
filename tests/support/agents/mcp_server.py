"""A real MCP server made with the official SDK: on stdio, or on the port and transport that it is given."""

import os
import sys

from mcp.server.mcpserver import MCPServer

server = MCPServer("calculator")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def environment(name: str) -> str:
    """A variable of the server's environment."""
    return os.environ.get(name, "unset")


@server.tool()
def die() -> str:
    """End the server."""
    os._exit(3)


if len(sys.argv) == 3:
    transport, port = sys.argv[1:]
    server.run(transport, host="127.0.0.1", port=int(port))  # type: ignore[call-overload]
else:
    server.run()
