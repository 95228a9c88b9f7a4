"""Objects of git that are written without the git program: starting it takes longer than a small change."""
