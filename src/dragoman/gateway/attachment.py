"""One client's live view of one session."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.gateway.client import ClientConnection
    from dragoman.gateway.session import Session


class Attachment:
    __slots__ = ("client", "send", "session")

    def __init__(self, client: ClientConnection, session: Session) -> None:
        self.client = client
        self.session = session
        self.send = client.peer.link.send
