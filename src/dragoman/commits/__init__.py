"""Commits, pushes and pull requests of what a session changed; a repository's configuration runs nothing."""
