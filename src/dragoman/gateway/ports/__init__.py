"""What the gateway needs from the outside: stores and agents implement these."""
