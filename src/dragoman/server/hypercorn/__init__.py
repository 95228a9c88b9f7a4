"""hypercorn on Dragoman's own sockets, with its protocols hardened."""
