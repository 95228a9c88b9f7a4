"""Slash commands: our own, and those of the workspace and the user."""
