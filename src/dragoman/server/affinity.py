"""A cookie that names this process, so that a balancer in front of several can bring a client back to it (G-127)."""

from __future__ import annotations

import secrets

COOKIE = "dragoman_affinity"


class Affinity:
    def __init__(self) -> None:
        self._value = secrets.token_hex(8)

    def header(self, *, secure: bool) -> tuple[str, str]:
        """For the answer that opens a connection; it says nothing about the client and lets nobody in."""
        guard = "; Secure" if secure else ""
        return "set-cookie", f"{COOKIE}={self._value}; Path=/; HttpOnly; SameSite=Lax{guard}"
