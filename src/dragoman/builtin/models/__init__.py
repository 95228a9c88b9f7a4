"""Models: which one, how it is reached, what it is sent, what can go wrong."""
