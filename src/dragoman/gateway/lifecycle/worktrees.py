"""A worktree for a session that asks for one in `_meta.dragoman.worktree`, and what becomes of it at deletion."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING

import msgspec

from dragoman.gateway.json_types import JsonObject, as_object, own_meta
from dragoman.gateway.lifecycle.workspace import workspace_root
from dragoman.gateway.ports.sandbox import Box
from dragoman.gateway.ports.worktrees import BoxChoice, Made, RecordedTree, WorktreeError, WorktreeWish
from dragoman.gateway.session.entry import SETUP_WAITING
from dragoman.wire.errors import INTERNAL_ERROR, RpcError, invalid_params

if TYPE_CHECKING:
    from dragoman.gateway.client import ClientConnection
    from dragoman.gateway.registry import Registry
    from dragoman.gateway.session.session import Session

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a new session works."""

    cwd: str
    sandbox: str | None = None
    repository: str | None = None
    """Of a worktree."""
    worktree: JsonObject = field(default_factory=dict)
    notices: tuple[str, ...] = ()

    def told(self) -> JsonObject:
        """Facts for `_meta.dragoman` of the answer."""
        return {"worktree": self.worktree} if self.worktree else {}

    def extra(self) -> JsonObject:
        """Facts that the directory stores."""
        found = {"sandbox": self.sandbox, "worktree": self.worktree or None}
        return {name: value for name, value in found.items() if value is not None}


@asynccontextmanager
async def placed(
    client: ClientConnection, session_id: str, agent: str, cwd: str, params: JsonObject, sandbox: str | None
) -> AsyncIterator[Place]:
    """The place of a new session; its worktree is removed again if there is no session at the end."""
    gateway, by = client.gateway, client.terms.identity.name
    try:
        wish = _wish(client, cwd, params)
        if wish is None or gateway.worktrees is None:
            yield Place(cwd, sandbox)
            return
        box = _box(client, agent, cwd, sandbox)
        made = await gateway.worktrees.create(session_id, cwd, wish, box=_choice(agent, box), by=by)
    except WorktreeError as error:
        raise as_rpc_error(error) from error
    # Rules on workspaces are about the repository: the sandbox that they prescribe holds in the worktree too.
    name = box.name if box is not None else sandbox
    async with _held(gateway, session_id, made, name, by) as place:
        yield place


@asynccontextmanager
async def forked(
    client: ClientConnection,
    session_id: str,
    original: Session,
    agent: str,
    cwd: str,
    params: JsonObject,
    recorded: RecordedTree | None = None,
) -> AsyncIterator[Place]:
    """The place of a fork: a worktree of its own if the original works in one, unless `cwd` is another project.

    Its files are those of the original's worktree now, or the recorded ones.
    """
    gateway, sandbox, home = client.gateway, original.entry.sandbox, original.cwd
    made, by = None, client.terms.identity.name
    if _same_project(original, cwd) and gateway.worktrees is not None:
        wish = _wish(client, cwd, params) or WorktreeWish()
        choice = _choice(agent, _box(client, agent, home, sandbox))
        try:
            made = await gateway.worktrees.fork(
                session_id, original.id, home, wish, recorded, box=choice, by=by
            )
        except WorktreeError as error:
            raise as_rpc_error(error) from error
    if made is None:
        yield Place(cwd, sandbox)
        return
    async with _held(gateway, session_id, made, sandbox, by) as place:
        yield place


def _same_project(original: Session, cwd: str) -> bool:
    """Whether `cwd` is in the worktree of a session or in its repository, which is what an editor names."""
    project = original.entry.repository
    return project is not None and any(
        PurePath(cwd).is_relative_to(folder) for folder in (project, original.workspace)
    )


def _box(client: ClientConnection, agent: str, cwd: str, sandbox: str | None) -> Box | None:
    """The sandbox that a session in a worktree of `cwd` gets; raises if it does not show files of this machine."""
    if client.gateway.agent_config(agent).kind == "remote":
        raise invalid_params(f"The agent {agent} runs elsewhere and cannot use a worktree here", "worktree")
    box = client.gateway.box_for(agent, cwd, workspace_root(cwd), sandbox)
    if box is not None and box.elsewhere:
        raise invalid_params(
            f"The files of the sandbox {box.name} are on another machine, where a worktree cannot be made: start "
            "the session without --worktree",
            "worktree",
        )
    return box


def _choice(agent: str, box: Box | None) -> BoxChoice | None:
    """What chooses the box of a boxed session; None for one that needs no clone."""
    return BoxChoice(agent, box.name) if box is not None and box.apart else None


@asynccontextmanager
async def _held(
    gateway: Registry, session_id: str, made: Made, sandbox: str | None, by: str
) -> AsyncIterator[Place]:
    facts: JsonObject = {
        "name": made.name,
        "branch": made.branch,
        "folder": made.folder,
        "repository": made.repository,
        **({"setup": SETUP_WAITING} if made.waits else {}),
    }
    try:
        yield Place(made.cwd, sandbox, made.repository, facts, tuple(made.notices))
    finally:
        if session_id not in gateway.sessions:
            await release(gateway, session_id, by, discard=True)


def _wish(client: ClientConnection, cwd: str, params: JsonObject) -> WorktreeWish | None:
    asked = own_meta(params).get("worktree")
    if asked is None:
        wanted = client.gateway.worktrees is not None and client.gateway.worktrees.wanted(cwd)
        return client.terms.worktree or (WorktreeWish() if wanted else None)
    if isinstance(asked, bool):
        return WorktreeWish() if asked else None
    try:
        return msgspec.convert(asked, WorktreeWish)
    except msgspec.ValidationError as error:
        raise invalid_params(
            f"_meta.dragoman.worktree must be true, false or an object with name, title and setup: {error}",
            "worktree",
        ) from error


async def made_again(gateway: Registry, session: Session) -> None:
    """Make the worktree of a session that is continued, if it was removed meanwhile; raises `RpcError`."""
    folder = as_object(session.entry.extra.get("worktree")).get("folder")
    if not isinstance(folder, str) or gateway.worktrees is None or session.follows:
        return
    try:
        notices = await gateway.worktrees.again(session.id, folder)
    except WorktreeError as error:
        raise as_rpc_error(error) from error
    for text in notices:
        session.recovery.notice_due(text)


async def release(gateway: Registry, session_id: str, by: str, *, discard: bool = False) -> JsonObject | None:
    """Remove the worktree of a session that is gone; returns it if it stays."""
    if gateway.worktrees is None:
        return None
    try:
        stays = await gateway.worktrees.session_deleted(session_id, by, discard=discard)
    except WorktreeError as error:
        log.warning("the worktree of a deleted session stays: %s", error, extra={"session": session_id})
        return {"error": str(error)}
    if stays is None:
        return None
    why = stays.loses or "it is kept"
    log.warning(
        "the worktree %s of a deleted session stays: %s", stays.name, why, extra={"session": session_id}
    )
    return {"name": stays.name, "branch": stays.branch, "folder": stays.folder, "why": why}


def as_rpc_error(error: WorktreeError) -> RpcError:
    facts = {"paths": error.paths} if error.paths else {}
    return RpcError(INTERNAL_ERROR, str(error), {"reason": error.code, **facts})
