"""How sessions begin, come back, wait and end."""
