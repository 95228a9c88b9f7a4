"""Updates a session's state from its agent's updates, and corrects those updates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.gateway.delivery import transcript
from dragoman.gateway.json_types import JsonObject, as_object, decode_object, with_own_meta
from dragoman.gateway.rewriting import dialects, quirks
from dragoman.gateway.session import auditing
from dragoman.gateway.session.settings.options import MODE, UPDATE, WORDS
from dragoman.gateway.session.stream import TOOL_KINDS

if TYPE_CHECKING:
    from dragoman.gateway.session.session import Session

OPTION_KINDS = frozenset({UPDATE, dialects.PARTIAL_OPTIONS})
OLDER_WORDS = {words.update: (category, words.current) for category, words in WORDS.items()}


class Observer:
    def __init__(self, session: Session) -> None:
        self._session = session

    def see(self, update: JsonObject) -> bool:
        """Update the session from a decoded update; True if the update was edited."""
        session, kind = self._session, update.get("sessionUpdate")
        if kind in TOOL_KINDS:
            repeated = session.tools.has_ended(update.get("toolCallId"))
            slipped = not repeated and session.tools.slipped_by(update)
            auditing.see_tool(session, update)
            changed = quirks.absolute_paths(update, session.cwd)
            if slipped and session.policy.watches_calls():
                update.update(with_own_meta(update, unmediated=True))
                auditing.unmediated(session, update)
                session.policy.slipped(update.get("title"))
                changed = True
            if quirks.tells_terminal(update.get("_meta")) and not self._terminals_in_meta():
                changed = session.updates.corrections.terminal_text(update) or changed
            return session.services.tool_content_for_client(update) or changed
        if kind in OPTION_KINDS:
            former = session.options.current()
            changed = session.options.read_update(update)
            session.choices.agent_sent_options(former)
            session.policy.agent_switched(former.get(MODE))
            return changed
        if kind in OLDER_WORDS:
            category, member = OLDER_WORDS[str(kind)]
            former = session.options.current()
            session.choices.agent_chose(category, update.get(member))
            session.policy.agent_switched(former.get(MODE))
        if kind == "usage_update":
            session.updates.meter.tell(update.get("cost"))
            return False
        if kind == "session_info_update":
            session.updates.corrections.follow_status(update)
            return "title" in update and self._titled(update)
        return False

    def _titled(self, update: JsonObject) -> bool:
        session = self._session
        if session.entry.named or self._is_of_recap(update["title"]):
            del update["title"]
            return True
        title = update["title"]
        session.entry.retitle(title if isinstance(title, str) else None)
        session.changed()
        return False

    def _is_of_recap(self, title: object) -> bool:
        """Whether to drop a title: an agent that has only the recap makes titles from it, or from the last prompts."""
        session = self._session
        return (session.recovery.context_lost and session.entry.title is not None) or transcript.is_recap(
            title
        )

    def mode_said(self, line: bytes) -> bool:
        """Replace a chunk that only announces a mode by a mode update; True if it was one (quirk mode_in_the_chat)."""
        update = as_object(as_object(decode_object(line).get("params")).get("update"))
        mode = quirks.mode_said(update)
        if mode is not None:
            self._session.publish({"sessionUpdate": "current_mode_update", "currentModeId": mode})
            former = self._session.options.current()
            self._session.choices.agent_chose(MODE, mode)
            self._session.policy.agent_switched(former.get(MODE))
        return mode is not None

    def _terminals_in_meta(self) -> bool:
        """Whether all attached clients draw terminals from `_meta`; without any, the client that sent the prompt."""
        session = self._session
        clients = [each.client for each in session.attachments]
        if not clients and session.turn is not None:
            clients = [session.turn.client]
        return bool(clients) and all(client.capabilities.draws_terminals for client in clients)
