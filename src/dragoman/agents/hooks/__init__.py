"""Hooks: agents that tell us every tool call before it runs, through a program of ours that they run themselves."""
