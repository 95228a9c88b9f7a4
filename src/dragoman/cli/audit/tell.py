"""Records what a command changed, in a chain of its own."""

from __future__ import annotations

from typing import Any

from dragoman.cli.entry import complain
from dragoman.cli.settings import load_settings


def tell(kind: str, **facts: Any) -> None:
    """Record it, if an audit is kept; a failure is told and does not stop the command."""
    paths, loaded = load_settings(quiet=True)
    if not loaded.config.audit.enabled:
        return
    from dragoman.audit.errors import AuditError
    from dragoman.audit.log import AuditLog

    log = AuditLog(paths.state_dir / "audit", loaded.config.audit)
    try:
        log.record(kind, {"by": "local", **facts})
    except AuditError as error:
        complain(f"warning: this is not in the audit: {error}")
    finally:
        log.close()
