"""`_dragoman/commit`: commits what a session changed, pushes it, opens a pull request; refused while a turn runs.

Each of the three is decided by the rules as the command that it stands for, recorded in the audit before it is done, and
journaled after. The session's owner does it, in threads.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from dragoman.gateway.json_types import JsonObject, decode_object, encode
from dragoman.gateway.lifecycle.restoring import as_rpc_error
from dragoman.gateway.ports.acts import NotRecorded, acting
from dragoman.gateway.ports.checkpoints import CheckpointError
from dragoman.gateway.ports.commits import (
    CommitError,
    CommitPlan,
    CommitResult,
    Commits,
    Committed,
    CommitWish,
    PullRequest,
    PullRequestPlan,
    Pushed,
    PushPlan,
)
from dragoman.gateway.rewriting.rewrite import session_of
from dragoman.gateway.session.session import Session
from dragoman.rpc.request import Request
from dragoman.wire.errors import RpcError, internal, invalid_params, invalid_request

if TYPE_CHECKING:
    from dragoman.gateway.client import ClientConnection

COMMIT = "_dragoman/commit"
OWNER_TIMEOUT = 3600.0
"""Seconds that the owner of a session has: a person may have to approve."""
LISTED = 100
"""Files that the journal and the audit name of one commit; the repository has all."""

T = TypeVar("T")


async def commit(client: ClientConnection, request: Request) -> None:
    here = client.gateway.sessions.get(session_of(request.params) or "")
    session = here if here is not None and client.terms.local_process else client.require_session(request)
    by, wish = _read(client, request)
    if session.owned_elsewhere:
        await _ask_owner(session, wish, by, request)
        return
    if session.gateway.commits is None:
        raise internal("This gateway does not look at repositories", "no_commits")
    request.reply(msgspec.json.encode(await Committing(session, request, wish, by).run()))


def _read(client: ClientConnection, request: Request) -> tuple[str, CommitWish]:
    """Who asks, and for what; only processes of ours say who it is."""
    params = {name: value for name, value in decode_object(request.params).items() if name[:1] != "_"}
    params.pop("sessionId", None)
    by = params.pop("by", None)
    named = by if isinstance(by, str) and client.terms.local_process else client.terms.identity.name
    try:
        wish = msgspec.convert(params, CommitWish)
    except msgspec.ValidationError as error:
        raise invalid_params(f"{COMMIT}: {error}", "params") from error
    if sum((wish.turn is not None, wish.all, bool(wish.paths))) > 1:
        raise invalid_params(f"{COMMIT}: choose one of turn, all and paths", "params")
    return named, wish


async def _ask_owner(session: Session, wish: CommitWish, by: str, request: Request) -> None:
    if session.agent is None:
        raise internal("The process that has this session cannot be reached", "session_held")
    params = {**msgspec.to_builtins(wish), "sessionId": session.agent_session_id, "by": by}
    request.answer(await session.agent.ask(COMMIT, encode(params), OWNER_TIMEOUT))


class Committing:
    """One request, step by step; what was done stays done if a later step is refused."""

    def __init__(self, session: Session, request: Request, wish: CommitWish, by: str) -> None:
        assert session.gateway.commits is not None
        self._session = session
        self._request = request
        self._wish = wish
        self._by = by
        self._commits: Commits = session.gateway.commits
        self._done = CommitResult()

    async def run(self) -> CommitResult:
        try:
            self._done = msgspec.structs.replace(self._done, committed=await self._commit())
            if self._wish.push or self._wish.pull_request:
                plan = await self._commits.plan_push(self._session.workspace)
                self._done = msgspec.structs.replace(self._done, pushed=await self._push(plan))
                if self._wish.pull_request:
                    opened = await self._open_pull_request(plan)
                    self._done = msgspec.structs.replace(self._done, pull_request=opened)
        except CheckpointError as error:
            raise self._with_done(as_rpc_error(error)) from error
        except NotRecorded as error:
            raise self._with_done(internal(str(error), "audit")) from error
        except RpcError as error:
            raise self._with_done(error) from error
        return self._done

    def _with_done(self, error: RpcError) -> RpcError:
        """The error with what was done before it."""
        done = self._done
        if done.committed is None and done.pushed is None:
            return error
        data = error.data if isinstance(error.data, dict) else {}
        steps = [f"committed {done.committed.commit[:12]}"] if done.committed is not None else []
        steps += [f"pushed {done.pushed.branch} to {done.pushed.remote}"] if done.pushed is not None else []
        text = f"{error.message} (done before: {' and '.join(steps)})"
        return RpcError(error.code, text, {**data, "done": msgspec.to_builtins(done)})

    # -- the steps

    async def _commit(self) -> Committed | None:
        plan = await self._plan()
        if not plan.names:
            if self._wish.push or self._wish.pull_request:
                return None
            others = f"; {len(plan.left)} that others changed too were left out" if plan.left else ""
            raise CommitError(f"There is nothing to commit{others}", "nothing_to_commit")
        if self._wish.message is None:
            raise CommitError("A message is needed for the commit", "no_message", list(plan.files))
        await self._session.policy.allow_command(self._request, "git commit", self._by)
        self._check_turn()
        return await self._apart(self._make(plan, self._wish.message))

    async def _plan(self) -> CommitPlan:
        self._check_turn()
        session, wish = self._session, self._wish
        session.services.checkpoints.catch_up()
        touched = None
        if not wish.all and not wish.paths:
            touched = await session.gateway.checkpoints.touched(session.id, wish.turn)
        return await self._commits.plan(session.workspace, wish, touched)

    def _check_turn(self) -> None:
        if self._session.turn is not None:
            raise invalid_request(
                "A turn is running: wait until it ends, or cancel it, then commit", "prompt_in_flight"
            )

    async def _make(self, plan: CommitPlan, message: str) -> Committed:
        facts: JsonObject = {
            "repository": plan.root,
            "branch": plan.branch,
            "before": plan.head,
            "files": list(plan.files[:LISTED]),
            "count": len(plan.files),
        }
        made = await self._act(
            "commit_made", facts, lambda: self._commits.commit(plan, message, hooks=self._wish.hooks)
        )
        count = len(made.files)
        self._tell(
            "commit_made",
            f"{count} file{'s' if count != 1 else ''} committed to {made.branch} by {self._by}: {made.commit[:12]}.",
            {**facts, "commit": made.commit},
        )
        return made

    async def _push(self, plan: PushPlan) -> Pushed:
        line = shlex.join(["git", "push", plan.remote, plan.branch])
        await self._session.policy.allow_command(self._request, line, self._by, plan.host)
        return await self._apart(self._do_push(plan))

    async def _do_push(self, plan: PushPlan) -> Pushed:
        facts: JsonObject = {
            "repository": plan.root,
            "remote": plan.remote,
            "url": plan.shown,
            "branch": plan.branch,
            "commit": plan.commit,
        }
        pushed = await self._act("pushed", facts, lambda: self._commits.push(plan, hooks=self._wish.hooks))
        self._tell(
            "pushed", f"{plan.branch} was pushed to {plan.remote} ({plan.shown}) by {self._by}.", facts
        )
        return pushed

    async def _open_pull_request(self, push: PushPlan) -> PullRequest:
        plan = await self._commits.plan_pull_request(push, self._wish)
        if not plan.program:
            await self._commits.open_pull_request(plan)  # raises, and says what to do by hand
        await self._session.policy.allow_command(
            self._request, _without_text(plan.words), self._by, push.host
        )
        return await self._apart(self._do_open(push, plan))

    async def _do_open(self, push: PushPlan, plan: PullRequestPlan) -> PullRequest:
        base = self._wish.base or ""
        facts: JsonObject = {
            "repository": push.root,
            "remote": push.shown,
            "branch": push.branch,
            "into": base,
        }
        url = await self._act("pull_request_opened", facts, lambda: self._commits.open_pull_request(plan))
        self._tell(
            "pull_request_opened",
            f"A pull request for {push.branch} was opened by {self._by}: {url}",
            facts | {"url": url},
        )
        return PullRequest(url, plan.title, base)

    # -- how each is done

    async def _apart(self, work: Coroutine[Any, Any, T]) -> T:
        """Go on to the end and journal it, even if the client does not wait for it."""
        return await asyncio.shield(self._session.gateway.spawn(work))

    async def _act(self, kind: str, facts: JsonObject, work: Callable[[], Awaitable[T]]) -> T:
        session = self._session
        told = {"session": session.id, "agent": session.agent_name, **facts, "by": self._by}
        async with acting(session.gateway.audit, kind, told):
            return await work()

    def _tell(self, kind: str, words: str, facts: JsonObject) -> None:
        self._session.record(kind, **facts, by=self._by)
        self._session.notice(words, "info")


def _without_text(words: tuple[str, ...]) -> str:
    """The command without title and text, which are no part of what rules are about."""
    kept, skip = [], False
    for word in words:
        if not skip and word not in ("--title", "--body", "--description"):
            kept.append(word)
        skip = not skip and word in ("--title", "--body", "--description")
    return shlex.join(kept)
