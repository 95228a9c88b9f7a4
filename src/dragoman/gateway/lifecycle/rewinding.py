"""`_dragoman/rewind`: takes a session back to before one of its messages: its conversation, its files, or both.

The journal keeps everything: a record says which events are undone. The agent goes back by itself if it can, otherwise
it begins anew with a recap (`restart_agent`). `undo` brings back what the last rewind or restore undid. A turn that runs
is not rewound, and of two rewinds at once the first wins. A session of another process is rewound by its owner.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import Struct

from dragoman.gateway.delivery.conversation import undone
from dragoman.gateway.delivery.conversation.messages import Message, Messages, prompt_of, read_messages
from dragoman.gateway.delivery.journal_feed import JournalFeed
from dragoman.gateway.delivery.journal_state import JournalState
from dragoman.gateway.json_types import JsonObject, as_object, decode_object, encode, own_meta
from dragoman.gateway.lifecycle import restart_agent
from dragoman.gateway.lifecycle.parking import CLOSE_PATIENCE
from dragoman.gateway.lifecycle.restoring import (
    OWNER_TIMEOUT,
    begin_restore,
    check_no_turn,
    explain_store_errors,
    finish_restore,
)
from dragoman.gateway.ports.acts import NotRecorded, acting
from dragoman.gateway.ports.checkpoints import Changes, Restored, Shared, Wish
from dragoman.gateway.ports.store import SessionChanges
from dragoman.gateway.rewriting.rewrite import session_of
from dragoman.gateway.session.checkpoints.changes import (
    SinceMessage,
    changes_of,
    changes_since,
    read_changes_wish,
    turn_of,
)
from dragoman.gateway.session.session import Session
from dragoman.rpc.request import Request
from dragoman.wire.errors import RpcError, internal, invalid_params, invalid_request

if TYPE_CHECKING:
    from dragoman.gateway.client import ClientConnection

log = logging.getLogger(__name__)

REWIND = "_dragoman/rewind"
MESSAGES = "_dragoman/messages"
BY_RECAP = (
    "The agent cannot go back by itself: it was started anew, and gets a transcript of the shortened conversation with "
    "your next message."
)


class RewindWish(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Where to go back to: before a message, before the last one (`retry`), or what was last undone (`undo`)."""

    to: int | str | None = None
    """The number of the message, or its client's id."""
    retry: bool = False
    undo: bool = False
    what: Literal["conversation", "files", "both"] = "conversation"
    shared: Shared = "refuse"


class Rewound(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What a rewind did."""

    message: int | None = None
    """The message that the session is before now."""
    prompt: list[JsonObject] = []
    """Its content, to send it again, changed or not."""
    undone: int = 0
    """Messages that were undone, or brought back by `undo`."""
    agent: str = ""
    """How the agent went back: `rewind` or `resume` by itself, `seed` with a recap; empty: with its next start."""
    restored: Restored | None = None
    """What happened to the files."""


class MessageList(Struct, frozen=True):
    """The messages of a session, the oldest first."""

    messages: list[Message]


def rewind(client: ClientConnection, request: Request) -> None:
    """Begin at once, so that the first of two wins, and a prompt that comes later is refused."""
    session = session_named(client, request)
    wish = _read(request)
    if session.owned_elsewhere:
        client.setup(request, partial(_ask_owner, session))
        return
    rewinding = begin_rewind(session, wish, client)

    async def answer(client: ClientConnection, request: Request) -> None:
        request.reply(msgspec.json.encode(await asyncio.shield(rewinding)))

    client.setup(request, answer)


def messages(client: ClientConnection, request: Request) -> None:
    """List the messages that a session can go back to."""
    session = session_named(client, request)
    if session.owned_elsewhere:
        client.setup(request, partial(_ask_owner, session))
        return

    async def answer(client: ClientConnection, request: Request) -> None:
        found = await read_messages(_journal(session).store, session.id)
        request.reply(msgspec.json.encode(MessageList(list(found.all))))

    client.setup(request, answer)


def changes(client: ClientConnection, request: Request) -> None:
    """Tell what a session changed: all, one turn (`turn`), or all since a message (`since`)."""
    session = session_named(client, request)
    wish = read_changes_wish(request)
    if session.owned_elsewhere:
        client.setup(request, partial(_ask_owner, session))
        return

    async def answer(client: ClientConnection, request: Request) -> None:
        if wish.since is None:
            told: Changes | SinceMessage = await changes_of(session, wish.turn)
        else:
            found = await read_messages(_journal(session).store, session.id)
            told = await changes_since(session, found, found.find(wish.since))
        request.reply(msgspec.json.encode(told))

    client.setup(request, answer)


def session_named(client: ClientConnection, request: Request) -> Session:
    """The session of a request; a process of ours need not be attached to it."""
    here = client.gateway.sessions.get(session_of(request.params) or "")
    return here if here is not None and client.terms.local_process else client.require_session(request)


async def _ask_owner(session: Session, client: ClientConnection, request: Request) -> None:
    if session.agent is None:
        raise internal("The process that has this session cannot be reached", "session_held")
    params = {**decode_object(request.params), "sessionId": session.agent_session_id}
    request.answer(await session.agent.ask(request.method, encode(params), OWNER_TIMEOUT))


def _read(request: Request) -> RewindWish:
    params = {name: value for name, value in decode_object(request.params).items() if name[:1] != "_"}
    params.pop("sessionId", None)
    try:
        wish = msgspec.convert(params, RewindWish)
    except msgspec.ValidationError as error:
        raise invalid_params(f"{REWIND}: {error}", "params") from error
    if (wish.to is not None) + wish.retry + wish.undo != 1:
        raise invalid_params(f"{REWIND} needs one of to, retry and undo", "params")
    return wish


def begin_rewind(session: Session, wish: RewindWish, client: ClientConnection) -> asyncio.Task[Rewound]:
    """Rewind a session that this process owns; raises `RpcError`, at once or in the task."""
    check_no_turn(session, "rewind")
    session.recovery.check_not_rewinding()
    if session.gateway.checkpoints.restoring(session.id):
        raise invalid_request("Files of this session are being restored: try again in a moment", "restoring")
    work = Rewinding(session, client)
    rewinding = session.gateway.spawn(
        explain_store_errors(work.undo(wish) if wish.undo else work.go_back(wish))
    )
    session.recovery.rewind(rewinding)
    return rewinding


def _journal(session: Session) -> JournalFeed:
    journal = session.journal
    if journal is None:
        raise invalid_request(
            "This session has no journal (sessions.journal), so its conversation cannot be rewound",
            "no_journal",
        )
    return journal


@dataclass(frozen=True)
class _Operation:
    """A rewind or restore that can be undone."""

    seq: int
    facts: JsonObject
    """The record of the rewind; empty if only files were restored."""
    files: bool


class Rewinding:
    def __init__(self, session: Session, client: ClientConnection) -> None:
        self._session = session
        self._client = client
        self._by = client.terms.identity.name

    async def go_back(self, wish: RewindWish) -> Rewound:
        session = self._session
        if session.journal is None and wish.what == "files" and isinstance(wish.to, int):
            return Rewound(wish.to, restored=await self._restore(Wish(to=wish.to, shared=wish.shared)))
        found = await self._messages(writes=wish.what != "files")
        message = found.last() if wish.retry or wish.to is None else found.find(wish.to)
        prompt = await prompt_of(_journal(session).store, session.id, message)
        restored = None
        if wish.what != "conversation":
            turn = await turn_of(session, found, message)
            asked = Wish(to=turn, shared=wish.shared)
            restored = await self._restore(asked, rewind=wish.what == "both")
        if wish.what == "files":
            return Rewound(message.number, prompt, restored=restored)
        since = [one for one in found.shown if one.event >= message.event]
        hidden = {one.number for one in found.all if one.undone} | {one.number for one in since}
        facts: JsonObject = {
            "message": message.number,
            "text": message.text,
            "files": True if restored is not None else None,
            "undone": found.ranges(hidden),
            "former": found.ranges({one.number for one in found.all if one.undone}),
            "agentSession": self._agent_session(),
            "cut": session.entry.cut or None,
        }
        ahead = session.entry.cut.get("drop") if self._is_ahead() else 0
        drop = len(since) + (ahead if isinstance(ahead, int) else 0)
        cut: JsonObject = {
            "session": session.agent_session_id,
            "drop": drop,
            "text": message.text,
            "event": message.event,
        }
        session.entry.save_extra(
            cut=cut
        )  # before the record: a crash between must not bring back what is undone
        await self._record(facts)
        count = f"{len(since)} message{'s' if len(since) != 1 else ''}"
        told = (
            f"The conversation was rewound by {self._by} to before message {message.number}: {count} undone."
        )
        session.notice(told, "info")
        how = await self._restart(session.agent_session_id, cut)
        return Rewound(message.number, prompt, len(since), how, restored)

    async def undo(self, wish: RewindWish) -> Rewound:
        """Bring back what the last rewind or restore undid, and undo what was said since."""
        operation = await self._last_operation()
        if not operation.facts:
            return Rewound(restored=await self._restore(Wish(undo=True)))
        found = await self._messages()
        restored = await self._restore(Wish(undo=True), rewind=True) if operation.files else None
        former = undone.Undone.read({"undone": operation.facts.get("former")})
        hidden = {one.number for one in found.all if one.event in former or one.event > operation.seq}
        back = [one for one in found.all if one.undone and one.number not in hidden]
        facts: JsonObject = {
            "undo": True,
            "files": True if restored is not None else None,
            "undone": found.ranges(hidden),
        }
        await self._record(facts)
        count = f"{len(back)} message{'s are' if len(back) != 1 else ' is'}"
        self._session.notice(f"The rewind was undone by {self._by}: {count} back.", "info")
        told = operation.facts.get("agentSession")
        how = await self._restart(
            told if isinstance(told, str) else "", as_object(operation.facts.get("cut"))
        )
        return Rewound(undone=len(back), agent=how, restored=restored)

    # -- what there is

    async def _messages(self, *, writes: bool = True) -> Messages:
        """The messages; with `writes`, raises if the journal cannot be written."""
        session = self._session
        journal = _journal(session)
        await session.wait_settled()
        if writes and journal.state is not JournalState.STORED:
            raise internal(
                f"This conversation is not being saved, so it cannot be rewound: {journal.trouble}",
                "not_saved",
            )
        return await read_messages(journal.store, session.id)

    async def _last_operation(self) -> _Operation:
        """The last rewind or restore that was not undone, and is no undo itself."""
        session = self._session
        if session.journal is None:
            return _Operation(0, {}, files=True)
        await session.wait_settled()
        undone_rewinds = undone_files = 0
        kinds = (undone.MARK, undone.FILES)
        async for seq, record in undone.records_back(session.journal.store, session.id, kinds):
            if record.get("dragoman") != undone.RECORD:
                if record.get("rewind"):
                    continue  # told by the record of the rewind
                if as_object(record.get("wish")).get("undo"):
                    undone_files += 1
                elif undone_files:
                    undone_files -= 1
                else:
                    return _Operation(seq, {}, files=True)
                continue
            files = bool(record.get("files"))
            if record.get("undo"):
                undone_rewinds += 1
                undone_files += files
                continue
            if files and undone_files:
                undone_files, files = undone_files - 1, False
            if not undone_rewinds:
                return _Operation(seq, record, files)
            undone_rewinds -= 1
        raise internal("There is nothing to undo", "nothing_to_undo")

    def _agent_session(self) -> str | None:
        """The agent's session that has the conversation; None if it still waits for the recap."""
        session = self._session
        return (session.agent_session_id if session.recovery.recap is None else "") or None

    def _is_ahead(self) -> bool:
        """Whether the agent's session still has messages that an earlier rewind undid."""
        session = self._session
        return bool(session.entry.cut) and session.entry.cut.get("session") == session.agent_session_id

    # -- doing it

    async def _restore(self, wish: Wish, *, rewind: bool = False) -> Restored:
        session = self._session
        return await finish_restore(
            session, wish, self._by, begin_restore(session, wish, self._by), rewind=rewind
        )

    async def _record(self, facts: JsonObject) -> None:
        """Journal the rewind; the directory says before that there is one to look for."""
        session = self._session
        session.binding.check_open()
        session.entry.save_extra(**{undone.FLAG: True})
        store = _journal(session).store
        await store.get(session.id)  # written after the change above
        named = ("message", "undo", "files")
        told = {"session": session.id, "agent": session.agent_name, "by": self._by}
        told |= {name: facts[name] for name in named if facts.get(name) is not None}
        own = {"rewound": {name: facts[name] for name in ("message", "undo", "undone") if name in facts}}
        try:
            async with acting(session.gateway.audit, "conversation_rewound", told):
                session.binding.check_open()  # it may have been closed while this waited
                session.record(undone.RECORD, **facts, by=self._by)
                session.publish({"sessionUpdate": "session_info_update", "_meta": {"dragoman": own}})
        except NotRecorded as error:
            raise internal(
                f"The audit cannot be written, so nothing was rewound: {error}", "audit"
            ) from error
        session.binding.check_open()

    async def _restart(self, agent_session: str, cut: JsonObject) -> str:
        """Let the agent go, and restart it if it ran; returns the way in which it came back."""
        session = self._session
        if session.recovery.pending:
            waiting = {
                task for task in (session.recovery.settling, session.recovery.restarting) if task is not None
            }
            await asyncio.wait(waiting)
        running = session.agent is not None
        self._release()
        session.binding.know(agent_session)
        session.entry.save_extra(cut=cut or None)
        session.entry.save(SessionChanges(agent_session_id=agent_session or None))
        session.recovery.context_forgotten("")
        if not running:
            return ""
        try:
            result = await restart_agent.restart(self._client.gateway, session, self._client)
        except RpcError as error:
            session.binding.check_open()
            session.notice(f"The agent is not available: {error.message}")
            return ""
        how = str(own_meta(result).get("revived"))
        if session.recovery.take_loss():
            session.notice(BY_RECAP)
        return how

    def _release(self) -> None:
        """The agent does not answer for the session any more; its own session stays, for an undo."""
        session, gateway = self._session, self._client.gateway
        agent = session.agent
        if agent is None:
            return
        former = session.agent_session_id
        session.unbind()
        session.services.release_terminals()
        gateway.spawn(session.services.close())
        if agent.sessions and agent.capabilities.session("close"):
            gateway.spawn(agent.ask("session/close", encode({"sessionId": former}), CLOSE_PATIENCE))
        gateway.pool.reap(agent)
