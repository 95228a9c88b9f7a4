"""How a session's events reach clients: the feed, the journal's states, attachments, replays and exports."""
