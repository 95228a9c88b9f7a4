"""Sandboxes, which confine an agent to its workspace; one module per kind."""

from dragoman.sandbox.boxes import Sandboxes

__all__ = ["Sandboxes"]
