"""The adapter for Codex: `codex app-server`, JSON-RPC without the `jsonrpc` member."""
