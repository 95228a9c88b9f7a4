"""The files of a session, searching in them, and pages of the web."""
