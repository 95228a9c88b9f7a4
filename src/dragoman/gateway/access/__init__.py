"""A client's identity and rights: handshake, login, capabilities, roles, quotas, rate limits."""
