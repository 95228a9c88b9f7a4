"""Common parts of the adapters for agents with their own protocol: Claude Code and Codex."""
