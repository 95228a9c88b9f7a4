"""Models: choosing one, connecting to it, building its requests, explaining its failures."""
