"""Opens a session for a page: a new one, or an existing one from the page's last event on."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.bridge.commands import fields
from dragoman.bridge.errors import BridgeError
from dragoman.bridge.events.summary import kept_of, last_number, snapshot
from dragoman.gateway.json_types import JsonObject, decode_object
from dragoman.gateway.ownership.entries import SessionEntry
from dragoman.gateway.session.session import Session
from dragoman.rpc.request import Reply
from dragoman.wire.errors import RpcError

if TYPE_CHECKING:
    from dragoman.bridge.client import BridgeClient
    from dragoman.bridge.session_hub import SessionHub


REWOUND = (
    "The journal of this conversation was brought back to an earlier state, from a back-up or by a loss of power: "
    "it is shown as it is now."
)
NOT_KEPT = "What was said before cannot be shown: sessions are not kept here (sessions.journal)."


async def new_session(client: BridgeClient, command: JsonObject) -> str | None:
    cwd = command.get("cwd")
    if not isinstance(cwd, str) or not cwd:
        raise BridgeError("cwd", "A session needs a folder to work in.")
    home = str(Path.home()) if cwd == "~" or cwd.startswith("~/") else ""
    params: JsonObject = {"cwd": home + cwd.removeprefix("~") if home else cwd, "mcpServers": []}
    asked = {name: command[name] for name in ("agent", "sandbox") if command.get(name) is not None}
    if asked:
        params["_meta"] = {"dragoman": asked}
    if command.get("additionalDirectories"):
        params["additionalDirectories"] = command["additionalDirectories"]

    def created(reply: Reply) -> None:
        session = client.bridge.gateway.sessions[decode_object(reply.result)["sessionId"]]
        shown = snapshot(session, kept_of(session), {}, [])
        event = {"type": "session_created", "sessionId": session.id, "session": shown}
        client.tell({**event, **fields.echoed_id(command)})
        client.tell({"type": "caught_up", "sessionId": session.id, "lastSeq": shown["lastSeq"]})

    result = await client.gateway_client.result("session/new", params, created)
    return str(result["sessionId"])


async def load_session(client: BridgeClient, command: JsonObject) -> str | None:
    """Send `session_loaded`, then the events that the page lacks, then `caught_up`."""
    session_id = fields.session_id(command)
    kept = await client.bridge.find(session_id)
    hub = await client.bridge.hub(session_id)
    after, tail = fields.number(command, "afterSeq", 0), fields.number(command, "tail", None)
    await _Loading(client, command, kept, hub).run(await _common(client, command, kept, after), tail)
    return session_id


async def _common(client: BridgeClient, command: JsonObject, kept: SessionEntry, after: int) -> int:
    """The last event that page and journal have in common; 0 if the page's events are not in this journal."""
    epoch, store = fields.number(command, "epoch", None), client.bridge.gateway.store
    if not after or epoch is None or store is None or epoch == kept.epoch:
        return after
    if await store.common_seq(kept.id, epoch, after) == after:
        return after
    client.fail(BridgeError("rewound", REWOUND), {"sessionId": kept.id})
    return 0


async def attach(client: BridgeClient, session_id: str) -> None:
    """Send the session's events from now on to a page that acts in a session without loading it."""
    kept = await client.bridge.find(session_id)
    hub = await client.bridge.hub(session_id)
    await _Loading(client, {}, kept, hub, from_now=True).run(0, 0)


class _Loading:
    def __init__(
        self,
        client: BridgeClient,
        command: JsonObject,
        kept: SessionEntry,
        hub: SessionHub,
        *,
        from_now: bool = False,
    ) -> None:
        self._client = client
        self._from_now = from_now
        """No past events are requested, so it is no error if they are not stored."""
        self._command = command
        self._kept = kept
        self._hub = hub
        self._after = 0
        self._pruned: tuple[int, int] | None = None
        """First and last of the requested events that are no longer stored."""

    async def run(self, after: int, tail: int | None) -> None:
        client, kept = self._client, self._kept
        live = client.bridge.gateway.sessions.get(kept.id)
        journal = live.journal if live is not None else None
        last = journal.delivered if journal is not None else kept.last_seq
        # A number beyond the last event: the page has events of another journal.
        after = 0 if after > last else after
        wanted = max(after, 0 if tail is None else last - tail)
        self._after = max(wanted, kept.first_seq - 1)
        self._pruned = (wanted + 1, self._after) if wanted < self._after else None
        watch = client.watch(self._hub, self._tell, self._after)
        watch.rejoining = True
        params = {"sessionId": kept.id, "cwd": kept.cwd, "_meta": {"dragoman": {"afterSeq": self._after}}}
        try:
            await client.gateway_client.result("session/resume", params, self._loaded)
        except RpcError:
            client.unwatch(kept.id)
            raise
        finally:
            watch.rejoining = False

    def _loaded(self, reply: Reply) -> None:
        """Called synchronously with the reply, before any event of the session is sent."""
        client, session_id = self._client, self._kept.id
        if not client.watches(session_id):
            return  # the page left meanwhile
        client.opened(session_id)
        attachment = client.gateway_client.client.attachments[session_id]
        session = client.bridge.gateway.sessions[session_id]
        # In the next loop turn: the gateway is about to set where this attachment begins.
        last = self._last(session)

        def caught_up() -> None:
            client.tell({"type": "caught_up", "sessionId": session_id, "lastSeq": last})

        asyncio.get_running_loop().call_soon(attachment.after, last, caught_up)

    def _last(self, session: Session) -> int:
        return last_number(session, self._kept)

    def _tell(self) -> None:
        client, kept = self._client, self._kept
        session = client.bridge.gateway.sessions[kept.id]
        if session.journal is None and not session.owned_elsewhere:
            shown = session.feed.seq
            self._after, missed = last_number(session, kept), self._after < shown
        else:
            missed = False
        event = {
            "type": "session_loaded",
            "sessionId": kept.id,
            "session": snapshot(session, kept, self._hub.state, self._hub.queue),
            "afterSeq": self._after,
        }
        client.tell({**event, **fields.echoed_id(self._command)})
        if missed and not self._from_now:
            client.fail(BridgeError("not_kept", NOT_KEPT), {"sessionId": kept.id})
        elif self._pruned is not None:
            client.miss(kept.id, *self._pruned)
