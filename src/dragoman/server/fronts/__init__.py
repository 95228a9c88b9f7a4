"""The HTTP and WebSocket shapes of ACP, each a client of the gateway."""
