"""`dragoman sessions`: list, show, attach, export, close, delete."""
