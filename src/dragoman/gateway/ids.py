"""Session ids: unique over agents, processes and restarts, and legal in an HTTP header (G-040, G-041)."""

from __future__ import annotations

import base64
import secrets

PREFIX = "dgm_"


def new_session_id() -> str:
    """Random, never derived from the agent's own id: agents issue the same id again after a restart."""
    return PREFIX + base64.b32encode(secrets.token_bytes(15)).decode().lower()


def new_question_id() -> str:
    """Names a question to everybody who may answer it, in this process and in others."""
    return "ask_" + secrets.token_hex(8)
