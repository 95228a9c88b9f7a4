"""`dragoman agents`."""
