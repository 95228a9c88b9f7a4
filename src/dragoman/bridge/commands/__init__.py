"""The commands of a page."""
