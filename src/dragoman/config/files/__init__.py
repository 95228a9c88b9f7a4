"""Configuration files on disk: checking their ownership, reading and editing them."""
