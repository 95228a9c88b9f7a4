"""`dragoman policy`."""
