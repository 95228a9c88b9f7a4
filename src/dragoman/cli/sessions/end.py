"""Closes and deletes sessions, through their owner if they have one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from dragoman.cli.audit.tell import command_audit, tell
from dragoman.cli.conversation import Conversation
from dragoman.cli.sessions.state import View
from dragoman.config.model import Config
from dragoman.config.paths import Paths
from dragoman.gateway.json_types import JsonObject, as_object, own_meta
from dragoman.gateway.ports.agent import AgentUnavailable
from dragoman.gateway.ports.store import SessionHeld
from dragoman.store import FileStore

END_TIMEOUT = 60.0
"""Seconds that the owner has to end a session: it may have to stop an agent that does not end by itself."""


async def close(view: View, max_bytes: int) -> None:
    """Close the session through its owner."""
    assert view.address is not None
    async with _owner(view.address, max_bytes) as owner:
        await owner.result("session/close", {"sessionId": view.record.id})


def delete(paths: Paths, config: Config, view: View, *, discard: bool = False) -> JsonObject:
    """Delete a session; returns its worktree if that stays, else an empty object."""
    return asyncio.run(_delete(paths, config, view, discard))


async def _delete(paths: Paths, config: Config, view: View, discard: bool) -> JsonObject:
    max_bytes = config.limits.max_message_bytes
    if view.address is not None:
        return await _delete_at(view.address, view.record.id, max_bytes, discard)
    store = await FileStore.open(paths.database, paths.ensure(paths.runtime_dir))
    await asyncio.to_thread(tell, "session_deleted", session=view.record.id, agent=view.record.agent)
    try:
        await store.delete(view.record.id)
        await asyncio.to_thread(_delete_checkpoints, paths, view.record.id)
        return await asyncio.to_thread(_delete_worktree, paths, config, view.record.id, discard)
    except SessionHeld as held:  # another process acquired it meanwhile
        return await _delete_at(held.holder.owner.address, view.record.id, max_bytes, discard)
    finally:
        await store.close()


def _delete_checkpoints(paths: Paths, session_id: str) -> None:
    from dragoman.checkpoints.engine import Engine
    from dragoman.cli.entry import complain
    from dragoman.config.sections.checkpoints import CheckpointsConfig
    from dragoman.gateway.ports.checkpoints import CheckpointError

    try:
        Engine(paths.state_dir / "checkpoints", CheckpointsConfig()).delete(session_id)
    except CheckpointError as error:
        complain(f"warning: its checkpoints stay: {error}")


def _delete_worktree(paths: Paths, config: Config, session_id: str, discard: bool) -> JsonObject:
    from dragoman.cli.worktrees.opening import open_engine
    from dragoman.gateway.ports.worktrees import WorktreeError

    if not (paths.state_dir / "worktrees").is_dir():
        return {}
    try:
        with command_audit() as acting, open_engine(config, paths, acting) as engine:
            stays = engine.session_deleted(session_id, discard=discard)
    except WorktreeError as error:
        return {"error": str(error)}
    if stays is None:
        return {}
    why = stays.loses or "it is kept"
    return {"name": stays.name, "branch": stays.branch, "folder": stays.folder, "why": why}


async def _delete_at(address: str, session_id: str, max_bytes: int, discard: bool) -> JsonObject:
    params = {"sessionId": session_id, "_meta": {"dragoman": {"discard": discard}}}
    async with _owner(address, max_bytes) as owner:
        return as_object(own_meta(await owner.result("session/delete", params)).get("worktree"))


@asynccontextmanager
async def _owner(address: str, max_bytes: int) -> AsyncIterator[Conversation]:
    """A conversation with the owner of a session, bounded by `END_TIMEOUT`."""
    try:
        async with asyncio.timeout(END_TIMEOUT):
            conversation = await Conversation.with_owner(address, max_bytes)
            try:
                yield conversation
            finally:
                conversation.hang_up()
    except TimeoutError:
        raise AgentUnavailable(
            "the process that owns the session does not answer; end it, then try again"
        ) from None
