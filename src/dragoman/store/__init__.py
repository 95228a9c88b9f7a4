"""Where sessions and their journals are kept: SQLite, in one file, without a service."""

from dragoman.store.engine import SqliteStore

__all__ = ["SqliteStore"]
