"""Finds out without a look at the files whether a project changed since it was recorded."""
