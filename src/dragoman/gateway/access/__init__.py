"""What a client is and may do: handshake, login, capabilities, roles, quotas, rate limits."""
