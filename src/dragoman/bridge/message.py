"""A message to the agent, and the token of its sender."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace

from msgspec import Raw

from dragoman.bridge.errors import BridgeError
from dragoman.bridge.events import shapes
from dragoman.gateway.json_types import JsonObject, as_object, encode
from dragoman.gateway.session.prompts.queue import Waiting

STOPPED = "The turn was stopped before this message was sent."


@dataclass(frozen=True, slots=True)
class Sender:
    """A token as stored in a queue; its role is looked up when the message is sent."""

    name: str
    mark: str
    """Distinguishes the token from a later one of the same name; it is no credential."""


@dataclass(frozen=True, slots=True)
class Message:
    id: str
    blocks: list[JsonObject]
    sender: Sender | None = None
    held: str = ""
    """Why the message is not sent; empty if it is not held."""
    stopped: bool = False
    """Held by a cancel, until a user releases the message."""
    number: int = 0
    """Its place among the prompts of ACP clients that wait too; 0 comes before all of them."""

    def stop(self) -> Message:
        return replace(self, held=STOPPED, stopped=True)

    def as_shown(self) -> JsonObject:
        """The message as pages show it."""
        return {**self._facts(), "content": shapes.blocks(self.blocks)}

    def _facts(self) -> JsonObject:
        shown: JsonObject = {"clientMessageId": self.id, "content": self.blocks}
        if self.held:
            shown["held"] = self.held
        return {**shown, "stopped": True} if self.stopped else shown

    def as_waiting(self) -> Waiting:
        """The message among the prompts of clients that are no pages."""
        by = self.sender.name if self.sender is not None else ""
        return Waiting(self.number, self.id, Raw(encode(self.blocks)), by, held=self.held)

    def as_kept(self) -> JsonObject:
        """The message as the journal stores it."""
        sender = self.sender
        kept = {} if sender is None else {"sender": {"name": sender.name, "mark": sender.mark}}
        return {**self._facts(), **kept}

    @classmethod
    def from_stored(cls, stored: JsonObject) -> Message:
        sender = as_object(stored.get("sender"))
        return cls(
            str(stored.get("clientMessageId")),
            shapes.blocks(stored.get("content")),
            Sender(str(sender.get("name")), str(sender.get("mark"))) if sender else None,
            str(stored.get("held") or ""),
            stored.get("stopped") is True,
        )

    @classmethod
    def read(cls, command: JsonObject, id: object) -> Message:
        """Read a message from a command's `content`: a string, or ACP's blocks."""
        content = command.get("content")
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        if (
            not isinstance(content, list)
            or not content
            or not all(isinstance(each, dict) for each in content)
        ):
            raise BridgeError("bad_request", "`content` must be a text or a list of content blocks.")
        if all(each.get("type") == "text" and not shapes.text(each.get("text")).strip() for each in content):
            raise BridgeError("empty_prompt", "The message is empty.")  # before it waits in a queue
        return cls(id if isinstance(id, str) else f"q_{secrets.token_hex(8)}", content)
