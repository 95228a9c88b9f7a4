"""The gateway: sessions, routing, permissions. Defines the ports that the outer layers implement."""
