"""Client transports: stdio, TCP, unix socket. Only bytes and back-pressure here."""
