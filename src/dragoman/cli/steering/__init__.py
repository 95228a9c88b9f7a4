"""Commands that look at and steer sessions of all processes: `ps`, `cancel`, `queue`, `sessions rename` and `set`."""
