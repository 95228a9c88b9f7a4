"""Messages of a conversation, and what of it is undone."""
