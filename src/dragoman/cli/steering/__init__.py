"""Commands that look at and steer sessions of all processes: `ps`, `cancel`, `sessions rename`, `sessions set`."""
