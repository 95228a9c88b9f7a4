"""Who answers a question: a client here, or one of another process of ours, which passes its answer on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dragoman.gateway.access.identity import Identity
from dragoman.gateway.json_types import JsonObject, as_object
from dragoman.gateway.session.questions.approval import identity_of

if TYPE_CHECKING:
    from dragoman.gateway.access.client import Client

ANSWER = "_dragoman/answer"
"""The request by which a process that follows a session passes on an answer to a question that needs approvals."""
HEARD = "_dragoman/approval"
"""The notification by which the owner tells such a process who has approved."""


@dataclass(frozen=True, slots=True)
class Answerer:
    identity: Identity
    title: str | None
    """The name of the client program."""

    @classmethod
    def of(cls, client: Client) -> Answerer:
        info = as_object(client.info)
        title = info.get("title") or info.get("name")
        return cls(client.terms.identity, title if isinstance(title, str) else None)

    @classmethod
    def read(cls, facts: JsonObject) -> Answerer:
        """An answerer as another process of ours tells it."""
        client = facts.get("client")
        return cls(identity_of(facts), client if isinstance(client, str) else None)

    def facts(self) -> JsonObject:
        return {"name": self.identity.name, "role": str(self.identity.role), "client": self.title}
