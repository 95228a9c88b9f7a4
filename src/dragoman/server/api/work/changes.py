"""What a session changed in its project, and the way back, by REST."""

from __future__ import annotations

import msgspec

from dragoman.gateway.gateway import Gateway
from dragoman.gateway.lifecycle.committing import COMMIT
from dragoman.gateway.lifecycle.restoring import RESTORE, as_rpc_error
from dragoman.gateway.lifecycle.workspace import workspace_root
from dragoman.gateway.ports.checkpoints import Changes, Checkpoint, CheckpointError, Restored, Wish
from dragoman.gateway.ports.commits import CommitResult, Commits, CommitWish, Uncommitted
from dragoman.server.api.operation import READING, Operation, Values
from dragoman.server.api.reading import read
from dragoman.server.api.work.stored import StoredSessions
from dragoman.server.asgi import HttpError, Request, Response
from dragoman.server.fronts.shared_client import SharedClients

PATCH = "text/x-diff; charset=utf-8"
NO_REPOSITORY = {400: "The project is no git repository, or a bare one.", 404: "There is no such session."}
NO_TURN = {404: "There is no such session, or nothing of it is recorded.", 409: "Checkpoints are off."}


class CheckpointList(msgspec.Struct):
    """The checkpoints of a session, the oldest first."""

    checkpoints: list[Checkpoint]


class ChangesApi:
    def __init__(self, gateway: Gateway, gateway_clients: SharedClients) -> None:
        self._gateway = gateway
        self._sessions = StoredSessions(gateway, gateway_clients)

    def operations(self) -> tuple[Operation, ...]:
        one = "/api/sessions/{id}"
        turn = {"turn": "Only what this turn changed; turns are counted from 1."}
        # fmt: off
        return (
            Operation(
                "GET", f"{one}/changes", "What a session changed in its project", self.changes, Changes,
                query=turn, does=READING, refusals=NO_TURN,
            ),
            Operation(
                "GET", f"{one}/changes.patch", "The same as a patch for `git apply`", self.patch, content=PATCH,
                query=turn, does=READING, refusals=NO_TURN,
            ),
            Operation(
                "GET", f"{one}/uncommitted", "What differs from the last commit in the session's project",
                self.uncommitted, Uncommitted, does=READING, refusals=NO_REPOSITORY,
            ),
            Operation(
                "GET", f"{one}/uncommitted.patch", "The same as a patch for `git apply`", self.uncommitted_patch,
                content=PATCH, does=READING, refusals=NO_REPOSITORY,
            ),
            Operation(
                "GET", f"{one}/checkpoints", "The checkpoints of a session's turns", self.every, CheckpointList,
                does=READING, refusals=NO_TURN,
            ),
            Operation(
                "POST", f"{one}/restore", "Undo a hunk, a file, a turn or all, or go back to a message",
                self.restore, Restored, body=Wish, does=RESTORE,
                refusals={
                    **NO_TURN,
                    409: "A turn runs, other changes are in the way, or not only this session made them.",
                },
            ),
            Operation(
                "POST", f"{one}/commit", "Commit what a session changed, push it, open a pull request", self.commit,
                CommitResult, body=CommitWish, does=COMMIT,
                refusals={
                    **NO_REPOSITORY, 403: "A rule denies it, or a person did.",
                    409: "A turn or a merge is under way, no branch is checked out, or there is nothing to commit.",
                    502: "The remote refused, or the program for pull requests did.",
                },
            ),
        )
        # fmt: on

    async def changes(self, request: Request, values: Values) -> Response:
        await self._sessions.check(values["id"])
        try:
            found = await self._gateway.checkpoints.changes(values["id"], _turn(request))
        except CheckpointError as error:
            raise as_rpc_error(error) from error
        return Response.json(found)

    async def patch(self, request: Request, values: Values) -> Response:
        await self._sessions.check(values["id"])
        try:
            found = await self._gateway.checkpoints.patch(values["id"], _turn(request))
        except CheckpointError as error:
            raise as_rpc_error(error) from error
        return Response(200, found, PATCH)

    async def uncommitted(self, request: Request, values: Values) -> Response:
        root = workspace_root(await self._sessions.check(values["id"]))
        try:
            return Response.json(await self._commits.uncommitted(root))
        except CheckpointError as error:
            raise as_rpc_error(error) from error

    async def uncommitted_patch(self, request: Request, values: Values) -> Response:
        root = workspace_root(await self._sessions.check(values["id"]))
        try:
            return Response(200, await self._commits.patch(root), PATCH)
        except CheckpointError as error:
            raise as_rpc_error(error) from error

    @property
    def _commits(self) -> Commits:
        if self._gateway.commits is None:
            raise HttpError(409, "This gateway does not look at repositories.", code="no_commits")
        return self._gateway.commits

    async def every(self, request: Request, values: Values) -> Response:
        await self._sessions.check(values["id"])
        try:
            found = await self._gateway.checkpoints.checkpoints(values["id"])
        except CheckpointError as error:
            raise as_rpc_error(error) from error
        return Response.json(CheckpointList(found))

    async def restore(self, request: Request, values: Values) -> Response:
        """Restore files through the session's owner; a stored session is opened for it without its agent."""
        wish = await read(request, Wish)
        reply = await self._sessions.ask(request, values["id"], RESTORE, msgspec.to_builtins(wish))
        return Response(200, reply.result, "application/json")

    async def commit(self, request: Request, values: Values) -> Response:
        """Commit through the session's owner; a stored session is opened for it without its agent."""
        wish = await read(request, CommitWish)
        reply = await self._sessions.ask(request, values["id"], COMMIT, msgspec.to_builtins(wish))
        return Response(200, reply.result, "application/json")


def _turn(request: Request) -> int | None:
    given = request.query("turn")
    if given is None:
        return None
    if not given.isascii() or not given.isdigit() or not 0 < int(given[:9]) < 10**9:
        raise HttpError(400, "turn is a number from 1 on.")
    return int(given[:9])
