"""From events of a journal to events of the bridge."""
