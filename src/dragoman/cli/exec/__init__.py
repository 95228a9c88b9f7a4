"""`dragoman exec`: one prompt from a script."""
