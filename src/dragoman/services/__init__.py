"""Files and terminals that the gateway itself serves, inside a session's workspace."""

from dragoman.services.local import WorkspaceServices

__all__ = ["WorkspaceServices"]
