"""The commands of `dragoman worktrees`."""
