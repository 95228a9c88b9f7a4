"""What a page may ask for."""
