"""Host paths to sandbox paths and back."""
