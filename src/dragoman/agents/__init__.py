"""Agents: subprocesses, adapters, remote agents, and the custody of their processes."""
