"""Files and terminals served by the gateway itself, inside a session's workspace."""

from dragoman.services.local import WorkspaceServices

__all__ = ["WorkspaceServices"]
