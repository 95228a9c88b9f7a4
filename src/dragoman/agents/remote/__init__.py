"""Remote agents: ACP over WebSocket or Streamable HTTP, as a client."""
