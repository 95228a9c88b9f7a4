"""The chat page's own dialect at `/bridge`: a session's journal as plain, numbered events (docs/reference/bridge.md)."""
