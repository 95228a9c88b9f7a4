"""The web chat's protocol at `/bridge`: a session's journal as numbered JSON events (docs/reference/bridge.md)."""
