"""Session ids: unique across agents, processes and restarts, and valid in an HTTP header (G-040, G-041)."""

from __future__ import annotations

import base64
import secrets

PREFIX = "dgm_"


def new_session_id() -> str:
    """A random id, never derived from the agent's own: agents issue the same id again after a restart."""
    return PREFIX + base64.b32encode(secrets.token_bytes(15)).decode().lower()


def new_question_id() -> str:
    """The id by which clients of this process and of others answer a question."""
    return "ask_" + secrets.token_hex(8)
