"""Recording and restoring the files of a session's project."""
