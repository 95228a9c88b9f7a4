"""How clients reach the gateway: stdio, TCP, unix socket. Only bytes and back-pressure here."""
