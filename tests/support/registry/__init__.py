"""A registry on this machine, and archives of every kind for it."""
