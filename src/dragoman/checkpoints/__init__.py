"""Checkpoints: the files of a session's project, recorded in a git object store of our own."""
