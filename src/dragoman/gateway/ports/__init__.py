"""Interfaces that the gateway needs; stores, agents, sandboxes and services implement them."""
