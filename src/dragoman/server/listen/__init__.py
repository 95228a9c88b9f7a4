"""From a listening socket to a connection whose protocol is known: accepting, limits, TLS, proxies."""
