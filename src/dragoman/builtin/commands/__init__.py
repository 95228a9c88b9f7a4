"""Slash commands: built-in ones, and those of the workspace and the user."""
