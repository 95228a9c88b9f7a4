"""Closes and deletes sessions, through their owner if they have one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from dragoman.cli.conversation import Conversation
from dragoman.cli.sessions.state import View
from dragoman.config.paths import Paths
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


def delete(paths: Paths, view: View, max_bytes: int) -> None:
    asyncio.run(_delete(paths, view, max_bytes))


async def _delete(paths: Paths, view: View, max_bytes: int) -> None:
    if view.address is not None:
        await _delete_at(view.address, view.record.id, max_bytes)
        return
    store = await FileStore.open(paths.database, paths.ensure(paths.runtime_dir))
    try:
        await store.delete(view.record.id)
        await asyncio.to_thread(_delete_checkpoints, paths, view.record.id)
    except SessionHeld as held:  # another process acquired it meanwhile
        await _delete_at(held.holder.owner.address, view.record.id, max_bytes)
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


async def _delete_at(address: str, session_id: str, max_bytes: int) -> None:
    async with _owner(address, max_bytes) as owner:
        await owner.result("session/delete", {"sessionId": session_id})


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
