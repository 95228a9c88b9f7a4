"""The network side of `dragoman serve`: one port and one admission check for all HTTP and WebSocket forms of ACP."""
