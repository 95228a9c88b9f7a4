"""Full-text search of what was said in sessions: a disposable index beside the store."""
