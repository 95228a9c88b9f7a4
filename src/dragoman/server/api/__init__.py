"""REST for people who do not speak JSON-RPC."""
