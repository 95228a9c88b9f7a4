"""hypercorn on our own sockets, with its protocols corrected."""
