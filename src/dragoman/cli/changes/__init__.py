"""`dragoman changes`, `revert` and `rewind`: what a session did to the files, and the way back."""
