"""REST about the work of sessions: changes, queue, search, usage, worktrees."""
