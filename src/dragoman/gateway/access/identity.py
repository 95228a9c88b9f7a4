"""Who a client is and what it may do: observe, control, administer; each role may all that the ones before it may.

observe    initialize, list sessions, load or resume them, read along; it is asked nothing and answers nothing
control    everything with sessions: prompt, answer, choose, cancel, close, delete
admin      also tokens and limits
"""

from __future__ import annotations

import enum
from collections.abc import Collection
from dataclasses import dataclass, field

from dragoman.config.model import QuotaConfig
from dragoman.wire.errors import RpcError, forbidden


class Role(enum.IntEnum):
    """In the order of what they may; `str` gives the name that people write."""

    OBSERVE = 1
    CONTROL = 2
    ADMIN = 3

    def __str__(self) -> str:
        return self.name.lower()


ROLES = {str(role): role for role in Role}
"""Roles by the name that people write."""

WATCHING = frozenset({"initialize", "session/list", "session/load", "session/resume"})
"""The methods that an observer may call; what is not listed needs `control`, also methods of the future."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Whose token was shown."""

    name: str
    role: Role = Role.ADMIN
    key: str = ""
    """Tells a token from a later one of the same name."""
    quota: QuotaConfig = field(default_factory=QuotaConfig, compare=False)
    login: str = field(default="", compare=False)
    """The browser's login that stood for the token; empty when the token itself was shown."""

    @property
    def may_control(self) -> bool:
        return self.role >= Role.CONTROL

    def refusal(self, needed: Role, what: str) -> RpcError | None:
        """Why `what`, which needs a role, is not done for this one; None when it may."""
        if self.role >= needed:
            return None
        return forbidden(
            f"{what} needs the role {needed}; the token {self.name} has the role {self.role}",
            token=self.name,
            role=str(self.role),
            needed=str(needed),
        )

    def method_refusal(self, method: str) -> RpcError | None:
        """The same for a method of the protocol."""
        return None if method in WATCHING else self.refusal(Role.CONTROL, method)


def name_refusal(name: str, allow_from: Collection[str], deny_by_default: bool) -> str | None:
    """Why the holder of the token `name` may not come in over the network; None when it may."""
    if name in allow_from or not (allow_from or deny_by_default):
        return None
    reason = "is not in serve.allow_from" if allow_from else "is refused by serve.deny_by_default"
    return f"The token {name} {reason}."


INSTANCE = Identity("admin")
"""Whoever has the instance's own token."""

LOCAL = Identity("local")
"""This user's own processes, on stdio and on the unix socket: their file mode is the lock."""

TAKEN_NAMES = frozenset({INSTANCE.name, LOCAL.name})
