"""What older versions stored, converted at a start."""
