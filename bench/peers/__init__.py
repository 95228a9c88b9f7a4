"""The two ends of a measured conversation: an agent that floods and a client that counts."""
