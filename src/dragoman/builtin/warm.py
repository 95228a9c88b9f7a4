"""Loads what speaks to models and MCP servers: in a thread, because it takes a second or more."""

from __future__ import annotations

import importlib
import threading
from types import ModuleType

_one_at_a_time = threading.Lock()
"""Packages with circular imports inside break when two threads import them at once."""


def load(module: str) -> ModuleType:
    """Import one of our modules that needs something heavy; blocks."""
    with _one_at_a_time:
        return importlib.import_module(module)
