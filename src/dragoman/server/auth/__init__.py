"""Authentication of requests: tokens, browser logins, host and origin checks."""
