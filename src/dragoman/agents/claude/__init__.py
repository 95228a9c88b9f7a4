"""Claude Code in its own tongue: `claude` in stream-json mode, driven over its control protocol."""
