"""Minimal relays on the official SDKs, each run in the environment of its own SDK."""
