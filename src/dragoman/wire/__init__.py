"""Bytes to messages and back, without IO: framing, envelopes, error codes, limits."""
