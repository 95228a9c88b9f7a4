"""Everything that can be an agent: subprocesses, adapters and what they run in."""
