"""Bytes to messages and back, without IO: framing, envelopes, the error table, limits."""
