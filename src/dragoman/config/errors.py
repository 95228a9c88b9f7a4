"""What goes wrong between what the user wrote and what Dragoman can do with it."""

from __future__ import annotations


class ConfigError(Exception):
    """A mistake in the configuration; the message is meant for a person and names the place."""
