"""How sessions are created, loaded, parked and ended, and how their agents are restarted."""
