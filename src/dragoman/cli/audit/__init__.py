"""`dragoman audit`."""
