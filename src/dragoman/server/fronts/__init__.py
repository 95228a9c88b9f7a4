"""The HTTP and WebSocket forms of ACP, each a client of the gateway."""
