"""The audit in pieces, for readers that look at a part of it at a time."""
