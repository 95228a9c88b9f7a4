"""Changes to messages between clients and agents: session ids, dialects, quirks, content."""
