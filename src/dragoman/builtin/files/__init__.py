"""Files of a session, searching them, and fetching web pages."""
