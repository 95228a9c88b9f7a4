"""Dragoman's own agent: an ACP agent in a process of its own, with any model or none."""
