"""Decides what an agent may do, by facts: shell lines, paths and hosts instead of the agent's labels."""
