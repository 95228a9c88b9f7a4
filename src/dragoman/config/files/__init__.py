"""Files of the configuration on disk: whose they are, reading and editing them."""
