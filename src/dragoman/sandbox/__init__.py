"""Sandboxes: agents that run where they can only touch their workspace; a file per kind."""

from dragoman.sandbox.boxes import Sandboxes

__all__ = ["Sandboxes"]
