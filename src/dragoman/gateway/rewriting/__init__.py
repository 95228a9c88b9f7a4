"""What is changed in messages on their way: session ids, dialects, quirks, content."""
