"""Sandbox mode: a copy of the workspace, and bubblewrap around commands."""
