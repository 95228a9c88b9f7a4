"""What the agents with a tongue of their own have in common: Claude Code and Codex."""
