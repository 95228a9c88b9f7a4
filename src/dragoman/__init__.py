"""Dragoman: one gateway between clients and coding agents (Agent Client Protocol).

Public are the names in `__all__` and `dragoman.agent.Turn`; everything else is internal (docs/reference/python-api.md).
This file imports nothing, because every start loads it.
"""

__all__ = ["__version__"]

__version__ = "0.1.0"
