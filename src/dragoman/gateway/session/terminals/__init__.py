"""Output of terminals while their commands run."""
