"""Which process owns a session, and how other processes reach it."""
