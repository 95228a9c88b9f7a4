"""The line that the user types: its text, completion, pastes and what is sent for it."""
