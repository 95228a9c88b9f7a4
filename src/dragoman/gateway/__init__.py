"""Sessions, routing, permissions: what Dragoman is. Defines the ports that everything else implements."""
