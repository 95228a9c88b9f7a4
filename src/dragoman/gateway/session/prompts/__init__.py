"""Prompts of a session: the running turn, those that wait for its end, and words for a turn that runs."""
