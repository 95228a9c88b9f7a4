"""A cookie that names this process, so that a load balancer routes a client to the same process again (G-127)."""

from __future__ import annotations

import secrets

COOKIE = "dragoman_affinity"


class Affinity:
    def __init__(self) -> None:
        self._value = secrets.token_hex(8)

    def header(self, *, secure: bool) -> tuple[str, str]:
        """Header for the response that opens a connection; the cookie names no client and is no credential."""
        guard = "; Secure" if secure else ""
        return "set-cookie", f"{COOKIE}={self._value}; Path=/; HttpOnly; SameSite=Lax{guard}"
