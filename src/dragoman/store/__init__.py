"""The store of sessions: a directory in SQLite, journals in files."""

from dragoman.store.engine import FileStore

__all__ = ["FileStore"]
