"""Terminal output of commands, and keyboard input."""
