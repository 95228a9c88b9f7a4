"""What a session's turns used: read from the agent, and entered in the ledger."""
