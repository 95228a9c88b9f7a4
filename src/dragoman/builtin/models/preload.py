"""Imports the libraries for models and MCP servers; called in a thread, because it takes a second or more."""

from __future__ import annotations

import gc
import importlib
import sys
import threading
from types import ModuleType

_one_at_a_time = threading.Lock()
"""Packages with circular imports inside break when two threads import them at once."""


def load(module: str) -> ModuleType:
    """Import one of our modules that imports model or MCP libraries; blocking."""
    with _one_at_a_time:
        if module in sys.modules:
            return importlib.import_module(module)  # waits if another thread is importing it
        gc.disable()  # an import makes almost no garbage, and collecting takes a fifth of the time
        try:
            loaded = importlib.import_module(module)
        finally:
            gc.enable()
        gc.freeze()  # permanent objects: collecting among them would block a turn for half a second
        return loaded
