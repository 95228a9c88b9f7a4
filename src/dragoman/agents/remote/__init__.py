"""Agents behind a network: ACP over WebSocket or Streamable HTTP, as a client."""
