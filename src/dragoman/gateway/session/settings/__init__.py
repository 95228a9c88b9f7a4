"""Modes, models and options of a session."""
