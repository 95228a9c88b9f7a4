"""A real MCP server on stdio, made with the official SDK."""

import os

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


server.run()
