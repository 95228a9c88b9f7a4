"""Worktrees of sessions by REST."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from dragoman.gateway.gateway import Gateway
from dragoman.gateway.lifecycle.worktrees import as_rpc_error
from dragoman.gateway.ports.worktrees import Cleaned, Merged, Worktree, WorktreeError, Worktrees
from dragoman.server.api.operation import READING, Operation, Values
from dragoman.server.api.reading import read
from dragoman.server.asgi import HttpError, Request, Response

DOES = "_dragoman/worktrees"
WHERE = {"repository": "The folder of the repository, where the name is not enough."}
NONE = {404: "There is no such worktree."}


class WorktreeList(msgspec.Struct):
    worktrees: list[Worktree]


class MergeWish(msgspec.Struct, forbid_unknown_fields=True):
    """How to merge."""

    message: Annotated[
        str | None, Meta(description="Commit what is not committed first, with this message.")
    ] = None
    into: Annotated[
        str | None, Meta(description="The branch that is checked out, if it is not the one it began on.")
    ] = None


class WorktreesApi:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def operations(self) -> tuple[Operation, ...]:
        every, one = "/api/worktrees", "/api/worktrees/{name}"
        # fmt: off
        return (
            Operation(
                "GET", every, "Worktrees, what would be lost with them, and their disk use", self.list, WorktreeList,
                query={"repository": "Only those of this repository."}, does=READING,
            ),
            Operation(
                "DELETE", every, "Remove worktrees that hold nothing of their own, and what crashes left",
                self.clean, Cleaned, does=DOES,
            ),
            Operation(
                "POST", f"{one}/merge", "Merge a worktree's branch; a conflict changes nothing", self.merge, Merged,
                body=MergeWish, query=WHERE, does=DOES,
                refusals={**NONE, 409: "A conflict, files that are not committed, or another branch is checked out."},
            ),
            Operation(
                "POST", f"{one}/rebase", "Move a worktree's commits onto the branch that it began on", self.rebase,
                Merged, query=WHERE, does=DOES, refusals={**NONE, 409: "A conflict, or files that are not committed."},
            ),
            Operation(
                "POST", f"{one}/keep", "Keep a worktree, whatever becomes of its session", self.keep, Worktree,
                query=WHERE, does=DOES, refusals=NONE,
            ),
            Operation(
                "DELETE", one, "Remove a worktree's folder and branch", self.discard, Worktree, does=DOES,
                query={**WHERE, "force": "`true`: also if something is lost."},
                refusals={**NONE, 409: "Something would be lost; it is named."},
            ),
        )
        # fmt: on

    async def list(self, request: Request, values: Values) -> Response:
        return Response.json(WorktreeList(await self._worktrees.all(request.query("repository"))))

    async def clean(self, request: Request, values: Values) -> Response:
        store, live = self._gateway.store, list(self._gateway.sessions)
        stored = []
        if store is not None:
            found = [await store.get(session) for session in await self._worktrees.sessions()]
            records = [record for record in found if record is not None]
            stored = [record.id for record in records]
            live += await store.holders(records)
        return Response.json(await self._worktrees.clean(live, request.identity.name, stored=stored))

    async def merge(self, request: Request, values: Values) -> Response:
        wish = await read(request, MergeWish)
        try:
            done = await self._worktrees.merge(
                values["name"], request.query("repository"), wish.message, wish.into, request.identity.name
            )
        except WorktreeError as error:
            raise as_rpc_error(error) from error
        return Response.json(done)

    async def rebase(self, request: Request, values: Values) -> Response:
        try:
            done = await self._worktrees.rebase(
                values["name"], request.query("repository"), request.identity.name
            )
        except WorktreeError as error:
            raise as_rpc_error(error) from error
        return Response.json(done)

    async def keep(self, request: Request, values: Values) -> Response:
        try:
            return Response.json(await self._worktrees.keep(values["name"], request.query("repository")))
        except WorktreeError as error:
            raise as_rpc_error(error) from error

    async def discard(self, request: Request, values: Values) -> Response:
        force, by = request.query("force") == "true", request.identity.name
        try:
            done = await self._worktrees.discard(values["name"], request.query("repository"), by, force=force)
        except WorktreeError as error:
            raise as_rpc_error(error) from error
        return Response.json(done)

    @property
    def _worktrees(self) -> Worktrees:
        if self._gateway.worktrees is None:
            raise HttpError(409, "This gateway has no worktrees.", code="no_worktrees")
        return self._gateway.worktrees
