"""`dragoman serve`: the gateway on the network."""
