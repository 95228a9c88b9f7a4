"""Codex in its own tongue: `codex app-server`, JSON-RPC without the `jsonrpc` member."""
