"""A session's entry in the directory: its title and further facts, and the changes that are still to be written."""

from __future__ import annotations

import logging
from functools import partial

from msgspec import UNSET, UnsetType, structs

from dragoman.gateway.delivery.journal_state import JournalState, is_taken
from dragoman.gateway.json_types import JsonObject, as_object
from dragoman.gateway.ports.store import SessionChanges, StoreError
from dragoman.gateway.session.stream import Stream
from dragoman.wire import timestamps

log = logging.getLogger(__name__)

SETUP_WAITING = "waiting"
"""`setup` in what is stored about a session's worktree, until its commands ran or were refused."""


class Entry:
    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self.title: str | None = None
        self.extra: JsonObject = {}
        """Further facts that the directory stores about the session."""
        self.pruned = False
        """Retention removed the beginning of the journal."""
        self._owed: SessionChanges | None = None
        """Changes that could not be written to the directory yet."""

    def know(self, title: str | None, extra: JsonObject, *, pruned: bool = False) -> None:
        """Take over what the directory, or the request that creates the session, says."""
        self.title, self.extra, self.pruned = title, extra, pruned

    @property
    def sandbox(self) -> str | None:
        """The sandbox for all agents of this session: requested at its creation, or set on the command line."""
        name = self.extra.get("sandbox")
        return name if isinstance(name, str) else None

    @property
    def repository(self) -> str | None:
        """The repository, if the session works in a worktree of it: its rules and remembered answers hold."""
        return repository_in(self.extra)

    @property
    def setup_waits(self) -> bool:
        """The commands that prepare the session's worktree wait to be approved in its first turn."""
        return as_object(self.extra.get("worktree")).get("setup") == SETUP_WAITING

    @property
    def named(self) -> bool:
        """The user chose the title; titles from the agent do not replace it."""
        return bool(self.extra.get("named"))

    @property
    def has_terminals(self) -> bool:
        """Replays of this session have terminal references to replace."""
        return bool(self.extra.get("terminals"))

    @property
    def partial(self) -> bool:
        """The agent's own replay, which the journal begins with, was cut off."""
        return bool(self.extra.get("partial"))

    @property
    def cut(self) -> JsonObject:
        """How much the agent's own session is ahead of a rewound conversation; empty if it is not (`restart_agent`)."""
        return as_object(self.extra.get("cut"))

    def save_extra(self, **facts: object) -> None:
        if any(self.extra.get(name) != value for name, value in facts.items()):
            self.extra = {**self.extra, **facts}
            self.save(SessionChanges(extra=self.extra))

    def begin_turn(self, title: str | None) -> None:
        """The first prompt is the title until the agent sends one."""
        self.title = title
        self.touch("working", title)

    def retitle(self, title: str | None) -> None:
        self.title = title
        self.save(SessionChanges(title=title, updated_at=timestamps.now()))

    def rename(self, title: str) -> None:
        """Set the title that the user chose."""
        self.title = title
        self.save_extra(named=True)
        self.save(SessionChanges(title=title))
        self._stream.publish({"sessionUpdate": "session_info_update", "title": title})

    def save(self, changes: SessionChanges) -> None:
        """Write changes to the directory, in order with the journal; changes that fail are written later."""
        journal = self._stream.journal
        if journal is None:
            return
        if self._owed is not None:
            changes, self._owed = _merged(self._owed, changes), None
        if journal.state in (JournalState.STORED, JournalState.WAITING):
            journal.store.update(self._stream.id, journal.epoch, changes, partial(self._saved, changes))
        elif journal.state is JournalState.UNKEPT:
            self._owed = changes

    def touch(self, state: str, title: str | UnsetType | None = UNSET) -> None:
        """Write the time of use and the state to the directory."""
        journal = self._stream.journal
        if journal is None:
            return
        if title is UNSET and self._owed is None and journal.state is JournalState.STORED:
            journal.store.touch(self._stream.id, journal.epoch, state, self._touched)
        else:
            self.save(SessionChanges(updated_at=timestamps.now(), state=state, title=title))

    def _touched(self, error: StoreError | None) -> None:
        if error is not None:
            self._saved(SessionChanges(updated_at=timestamps.now()), error)

    def _saved(self, changes: SessionChanges, error: StoreError | None) -> None:
        if error is None:
            return
        log.error("session directory is not up to date: %s", error, extra={"session": self._stream.id})
        if not is_taken(error):
            self._owed = _merged(changes, self._owed) if self._owed is not None else changes


def repository_in(extra: JsonObject) -> str | None:
    """The repository of a session in a worktree, by what the directory stores about the session."""
    found = as_object(extra.get("worktree")).get("repository")
    return found if isinstance(found, str) else None


def _merged(older: SessionChanges, newer: SessionChanges) -> SessionChanges:
    names = SessionChanges.__struct_fields__
    fields = {name: getattr(newer, name) for name in names if getattr(newer, name) is not UNSET}
    return structs.replace(older, **fields)
