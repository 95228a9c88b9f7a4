"""Several gateways over one store in one event loop, with a clock and threads that a test controls."""
