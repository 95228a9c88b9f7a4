"""Translates events of a journal into events of the bridge."""
