"""What a line that begins with `/` or `!` does."""
