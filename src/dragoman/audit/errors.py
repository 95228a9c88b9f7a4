"""Why the audit could not be written."""

from __future__ import annotations


class AuditError(Exception):
    """A record could not be written; the text says where and why."""
