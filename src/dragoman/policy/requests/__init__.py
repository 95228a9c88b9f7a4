"""Permission requests of agents as acts: which agents send what, and how it is read."""
