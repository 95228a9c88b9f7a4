"""What the user configured: the model, its layers, and where things lie on disk."""
