"""A session's summary for the list of sessions, and its snapshot for a page that opens it."""

from __future__ import annotations

from dragoman.bridge.events import shapes
from dragoman.bridge.events.translate import SESSION_STATES, usage_fields
from dragoman.gateway.delivery import transcript
from dragoman.gateway.json_types import JsonObject, as_object
from dragoman.gateway.ownership.entries import SessionEntry
from dragoman.gateway.session.session import Session
from dragoman.wire import timestamps

PROMPT_CAPABILITIES = ("image", "audio", "embeddedContext")


def summary(session: Session | None, kept: SessionEntry) -> JsonObject:
    """The directory's entry, updated from the live session if there is one."""
    shown: JsonObject = {
        "sessionId": kept.id,
        "agent": kept.agent,
        "cwd": kept.cwd,
        "workspace": kept.workspace or kept.cwd,
        "title": kept.title,
        "state": _resting_state(kept),
        "live": kept.live,
        "updatedAt": kept.updated_at or timestamps.now(),
        "clients": 0,
        "questions": 0,
        "sandbox": kept.sandbox,
    }
    if kept.created_at is not None:
        shown["createdAt"] = kept.created_at
    return shown if session is None else {**shown, **_live(session)}


def _live(session: Session) -> JsonObject:
    shown: JsonObject = {
        "title": session.entry.title,
        **({"elsewhere": True} if session.owned_elsewhere else {"state": session.state}),
        "live": True,
        "clients": len(session.attachments),
        "questions": len(session.questions),
        "mediation": session.policy.mediation(),
    }
    if session.agent is not None and session.agent.box is not None:
        shown["sandbox"] = session.agent.box.name
    return shown


def _resting_state(kept: SessionEntry) -> str:
    if kept.live:  # in another process
        return kept.state if kept.state in SESSION_STATES else "idle"
    return "closed" if kept.state == "closed" else "parked"


def kept_of(session: Session) -> SessionEntry:
    """A directory entry for a new session that the directory does not list yet."""
    now = timestamps.now()
    return SessionEntry(
        id=session.id,
        agent=session.agent_name,
        cwd=session.cwd,
        workspace=session.workspace,
        created_at=now,
        updated_at=now,
        live=True,
    )


def last_number(session: Session, kept: SessionEntry) -> int:
    """The number of the last event; with journaling, only journaled events have numbers."""
    if session.journal is not None:
        return session.journal.delivered
    return kept.last_seq if session.owned_elsewhere or session.gateway.journaling else session.feed.seq


def snapshot(
    session: Session, kept: SessionEntry, recalled: JsonObject, queue: list[JsonObject]
) -> JsonObject:
    """The session's present state; `recalled` is the state from its journal, used where the live one has no value."""
    kept_elsewhere = session.owned_elsewhere and session.journal is None
    last = last_number(session, kept)
    current = {**recalled, **_current(session)}
    modes, options = _offer(session, current)
    return {
        **summary(session, kept),
        "firstSeq": kept.first_seq if session.journal is not None or kept_elsewhere else last + 1,
        "lastSeq": last,
        "epoch": session.journal.epoch if session.journal is not None else kept.epoch,
        "modes": modes,
        "configOptions": options,
        "commands": shapes.commands(
            as_object(current.get("available_commands_update")).get("availableCommands")
        ),
        "queue": queue,
        "usage": usage_fields(current["usage_update"]) if "usage_update" in current else None,
        "plan": shapes.plan(as_object(current.get("plan")).get("entries")),
        "promptCapabilities": _prompt_capabilities(session),
    }


def _current(session: Session) -> JsonObject:
    found = {kind: transcript.read_update(line) for kind, line in session.updates.current.items()}
    return {kind: update for kind, update in found.items() if update is not None}


def _offer(session: Session, current: JsonObject) -> tuple[JsonObject | None, list[JsonObject]]:
    offered = session.options.result or as_object(current.get("offered"))
    modes = offered.get("modes")
    mode = as_object(current.get("current_mode_update")).get("currentModeId")
    if isinstance(modes, dict) and mode is not None:
        modes = {**modes, "currentModeId": mode}
    options = as_object(current.get("config_option_update")).get("configOptions")
    if options is None:
        options = session.options.full or offered.get("configOptions")
    return shapes.modes(modes), shapes.options(options)


def _prompt_capabilities(session: Session) -> JsonObject:
    agent = session.agent
    if agent is not None:
        return {name: agent.capabilities.prompt(name) for name in PROMPT_CAPABILITIES}
    # No agent runs, so its capabilities are unknown; content that it does not accept is refused when it is sent.
    return dict.fromkeys(PROMPT_CAPABILITIES, True)
