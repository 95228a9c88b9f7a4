"""Configuration: the model, its layers, and the paths on disk."""
