"""The adapter for Claude Code: `claude` in stream-json mode, driven over its control protocol."""
