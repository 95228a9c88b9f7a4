"""The audit: who allowed what, by which rule, and what ran, in chains of hashes that show later changes."""
