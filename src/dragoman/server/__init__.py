"""The network side of `dragoman serve`: one port, one admission, every HTTP and WebSocket shape of ACP."""
