"""What the rules in force say about the acts of one session."""
