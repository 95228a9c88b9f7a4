"""Worktrees: a folder and a branch of its own for a session; no program that a repository names is run."""
