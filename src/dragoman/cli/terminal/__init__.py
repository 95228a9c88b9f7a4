"""What commands show a person, and what a person types."""
