"""Side-by-side benchmarks: Dragoman beside the direct pipe and relays on the official SDKs."""
