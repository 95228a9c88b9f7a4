"""Identities of clients and their roles; each role includes the rights of the ones before it.

observe    initialize, list sessions, load or resume them, read along; gets no questions
approve    also answers questions: permissions and elicitations
control    everything with sessions: prompt, answer, set options, cancel, close, delete
admin      also tokens, limits, and what is recorded about them
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal

from dragoman.config.model import QuotaConfig
from dragoman.wire.errors import RpcError, forbidden


class Role(enum.IntEnum):
    """Roles in the order of their rights; `str` gives the name used in configuration and messages."""

    OBSERVE = 1
    APPROVE = 2
    CONTROL = 3
    ADMIN = 4

    def __str__(self) -> str:
        return self.name.lower()


RoleName = Literal["observe", "approve", "control", "admin"]
ROLES = {str(role): role for role in Role}
"""Roles by the name used in configuration and messages."""

NEEDED: Mapping[str, Role] = {
    **dict.fromkeys(
        (
            "initialize",
            "session/list",
            "session/load",
            "session/resume",
            "_dragoman/queue",
            "_dragoman/messages",
            "_dragoman/changes",
        ),
        Role.OBSERVE,
    ),
    **dict.fromkeys(("permission_response", "elicitation_response"), Role.APPROVE),
    "_dragoman/tokens": Role.ADMIN,
}
"""The role that each method needs, over ACP, REST and the bridge; all others, future ones too, need `control`.

Over ACP an answer to a question is the response to the gateway's own request, and needs no method.
"""


@dataclass(frozen=True, slots=True)
class Identity:
    """The identity of a client, by its token."""

    name: str
    role: Role = Role.ADMIN
    key: str = ""
    """Distinguishes a token from a later one of the same name."""
    quota: QuotaConfig = field(default_factory=QuotaConfig, compare=False)
    login: str = field(default="", compare=False)
    """The browser login used instead of the token; empty when the token itself was sent."""

    @property
    def may_answer(self) -> bool:
        return self.role >= Role.APPROVE

    @property
    def may_control(self) -> bool:
        return self.role >= Role.CONTROL

    def refusal(self, needed: Role, what: str) -> RpcError | None:
        """The error if this identity lacks the role that `what` needs; else None."""
        if self.role >= needed:
            return None
        who = "a process that an agent started" if self == AGENT else f"the token {self.name}"
        return forbidden(
            f"{what} needs the role {needed}; {who} has the role {self.role}",
            token=self.name,
            role=str(self.role),
            needed=str(needed),
        )

    def method_refusal(self, method: str) -> RpcError | None:
        """The error if this identity may not call a method of the protocol; else None."""
        return self.refusal(role_for(method), method)


def role_for(method: str) -> Role:
    return NEEDED.get(method, Role.CONTROL)


def name_refusal(name: str, allow_from: Collection[str], deny_by_default: bool) -> str | None:
    """Why a client with the token `name` may not connect over the network; None if it may."""
    if name in allow_from or not (allow_from or deny_by_default):
        return None
    reason = "is not in serve.allow_from" if allow_from else "is refused by serve.deny_by_default"
    return f"The token {name} {reason}."


INSTANCE = Identity("admin")
"""A client with the instance's own token."""

LOCAL = Identity("local")
"""Processes of the same user, on stdio and on the unix socket, which file permissions protect."""

AGENT = Identity("agent", Role.OBSERVE)
"""Processes on the unix socket that an agent started: an agent must not prompt itself or answer its own questions."""

TAKEN_NAMES = frozenset({INSTANCE.name, LOCAL.name})
