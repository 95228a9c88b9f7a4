"""Translates host paths to sandbox paths and back."""
