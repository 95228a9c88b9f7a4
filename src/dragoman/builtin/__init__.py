"""The built-in agent: an ACP agent in its own process, with any model or none."""
