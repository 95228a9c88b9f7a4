"""Custody of agent processes: none of them, and no process they started, outlives the gateway."""

from dragoman.agents.custody.children import Child, Launch
from dragoman.agents.custody.lifeline import CustodyError
from dragoman.agents.custody.registry import Custody, Ward

__all__ = ["Child", "Custody", "CustodyError", "Launch", "Ward"]
