"""The error for what the user configured or asked for and Dragoman cannot do."""

from __future__ import annotations


class ConfigError(Exception):
    """Invalid configuration or options; the message is for the user and names the place."""
