"""The REST API for clients that do not use JSON-RPC."""
