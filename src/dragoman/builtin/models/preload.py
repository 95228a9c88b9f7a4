"""Loads what speaks to models and MCP servers: in a thread, because it takes a second or more."""

from __future__ import annotations

import gc
import importlib
import sys
import threading
from types import ModuleType

_one_at_a_time = threading.Lock()
"""Packages with circular imports inside break when two threads import them at once."""


def load(module: str) -> ModuleType:
    """Import one of our modules that needs something heavy; blocks."""
    with _one_at_a_time:
        if module in sys.modules:
            return importlib.import_module(module)  # waits if somebody else is at it
        gc.disable()  # next to nothing of it becomes garbage, and looking for some takes a fifth of the time
        try:
            loaded = importlib.import_module(module)
        finally:
            gc.enable()
        gc.freeze()  # it stays: a turn need not wait half a second for a look through all of it
        return loaded
