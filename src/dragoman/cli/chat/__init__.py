"""`dragoman chat`: a conversation in the terminal."""
