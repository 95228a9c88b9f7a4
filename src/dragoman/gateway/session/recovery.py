"""How a session comes back after its agent, its process or its last turn failed, and what the agent still remembers."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from dragoman.gateway.json_types import JsonObject, encode
from dragoman.wire.errors import RpcError, invalid_request

if TYPE_CHECKING:
    from dragoman.gateway.access.client import Client


class SharedLoad:
    """A load of the session that one client started and others wait for; cancelled when no client waits any more."""

    def __init__(self, client: Client, task: asyncio.Task[int | None]) -> None:
        self.client = client
        """The client whose request started it."""
        self.task = task
        self.waiting: Counter[Client] = Counter()

    async def wait(self, client: Client) -> int | None:
        """The result of the task; raises its `RpcError`."""
        self.waiting[client] += 1
        try:
            await asyncio.wait((self.task,))
        finally:
            self.waiting[client] -= 1
            if not self.waiting.total():
                self.task.cancel()
        if self.task.cancelled():
            raise RpcError(-32800, "Request cancelled")
        return self.task.result()


class Recovery:
    def __init__(self) -> None:
        self.context_lost = False
        """The current agent does not have the earlier conversation."""
        self._due: list[str] = []
        """Notices about a restart, for when clients are attached."""
        self.recap: bytes | None = None
        """The recap, sent to a restarted agent with the next prompt."""
        self.crashes = 0
        """Number of crashes of the agent since the last turn that ended well."""
        self.failed = False
        """The last turn ended with an error."""
        self.stopped = False
        """The last turn was cancelled."""
        self.last_used = time.monotonic()
        self.restarting: asyncio.Task[JsonObject] | None = None
        self.settling: asyncio.Task[None] | None = None
        """Task to wait for before the next request to the agent, which may still run a command or is just starting."""
        self.adoption: SharedLoad | None = None
        """Set while the agent's own replay is journaled, at the first load of a session that only the agent knew."""
        self.rewinding: asyncio.Task[Any] | None = None
        """Set while the session is taken back to an earlier message: no prompt and no other rewind begins."""
        self._loss_unreported = False

    def check_not_rewinding(self) -> None:
        """Raise while the session is taken back to an earlier message."""
        if self.rewinding is not None:
            raise invalid_request("This session is being rewound: try again in a moment", "rewinding")

    @property
    def pending(self) -> bool:
        """Requests to the agent must wait: it is restarted, or still works on what came before."""
        return self.settling is not None or self.restarting is not None

    def turn_ended(self, *, ok: bool, stopped: bool) -> None:
        self.last_used = time.monotonic()
        self.failed, self.stopped = not ok, stopped
        if ok:
            self.crashes = 0

    def crashed(self) -> None:
        self.crashes += 1

    def gave_up(self) -> None:
        """All tries to restart the agent failed; the next request begins with the first try again."""
        self.crashes = 0

    # -- what the agent remembers

    def context_loaded(self) -> None:
        """The agent has loaded the earlier conversation, so it needs no recap."""
        self.context_lost = False

    def recap_sent(self) -> None:
        """The agent answered a prompt that came with the recap."""
        self.context_lost, self.recap = False, None

    def context_forgotten(self, text: str | None) -> None:
        """The agent is new and gets `text`, the recap, with its next prompt; None: the journal cannot be read."""
        self.context_lost = text != ""
        meta = {"dragoman": {"recap": True}}
        self.recap = encode({"type": "text", "text": text, "_meta": meta}) if text else None

    def restarted(self) -> None:
        self._loss_unreported = self.context_lost

    def take_loss(self) -> bool:
        """Whether a notice is due that the agent does not have the earlier conversation; True once per loss."""
        unreported, self._loss_unreported = self._loss_unreported, False
        return unreported

    def notice_due(self, text: str) -> None:
        self._due.append(text)

    def take_notices(self) -> list[str]:
        due, self._due = self._due, []
        return due

    # -- work that others wait for

    def restart(self, task: asyncio.Task[JsonObject]) -> None:
        self.restarting = task
        task.add_done_callback(self._done)

    def rewind(self, task: asyncio.Task[Any]) -> None:
        self.rewinding = task
        task.add_done_callback(self._done)

    def settle(self, task: asyncio.Task[None]) -> None:
        self.settling = task
        task.add_done_callback(self._done)

    def adopt(self, adoption: SharedLoad) -> None:
        self.adoption = adoption
        adoption.task.add_done_callback(self._done)

    def end_adoption(self, adoption: SharedLoad) -> None:
        if self.adoption is adoption:
            self.adoption = None

    def give_up(self) -> None:
        """The session is closed: end the restart or the first load that is under way."""
        for task in (self.restarting, self.adoption.task if self.adoption is not None else None):
            if task is not None:
                task.cancel()

    def _done(self, task: asyncio.Task[Any]) -> None:
        if self.restarting is task:
            self.restarting = None
        if self.settling is task:
            self.settling = None
        if self.rewinding is task:
            self.rewinding = None
        if self.adoption is not None and self.adoption.task is task:
            self.adoption = None
