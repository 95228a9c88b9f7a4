"""Acts of people and of the gateway that the audit knows before they happen: merges, commits, restored files.

One record before the act, of a kind in `audit/kinds.py`, and `act_failed` if it raises:

- on the event loop: `async with acting(gateway.audit, "pushed", {"by": …, "session": …, …}): …`
- in a thread of the gateway: `with from_threads(gateway.audit)("commit_made", {…}): …`; make `from_threads` on the loop
- in a command: `with command_audit() as acting, acting("commit_made", {…}): …` (`cli/audit/tell.py`)

Facts have no file contents and no text of prompts; `by` is the identity that asked for the act (`local` for commands),
`session` the session that it is about. Values that must not be recorded are given as `secrets`.
`NotRecorded` is raised, and nothing is done, if the record cannot be written (`audit.on_failure`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext
from typing import Any, Protocol

from dragoman.gateway.ports.audit import Audit

LONGEST = 500
"""Characters of the reason why an act failed."""
NAMES = frozenset({"session", "agent", "worktree", "by"})
"""Facts of an act that its failure repeats."""


class NotRecorded(Exception):
    """An act was not done because the audit could not be written; the text says why."""


class Acting(Protocol):
    """Records an act before the block under `with` does it."""

    def __call__(
        self, kind: str, facts: dict[str, Any], secrets: Iterable[str] = ()
    ) -> AbstractContextManager[None]: ...


def unrecorded(kind: str, facts: dict[str, Any], secrets: Iterable[str] = ()) -> AbstractContextManager[None]:
    """Implements `Acting` where no audit is kept."""
    return nullcontext()


@asynccontextmanager
async def acting(
    audit: Audit, kind: str, facts: dict[str, Any], secrets: Iterable[str] = ()
) -> AsyncIterator[None]:
    await _record(audit, kind, facts, secrets)
    try:
        yield
    except BaseException as error:
        audit.record("act_failed", failed(kind, facts, error), secrets)
        raise


def from_threads(audit: Audit) -> Acting:
    """For threads of the process whose event loop calls this; they wait until the loop has recorded the act."""
    loop = asyncio.get_running_loop()

    @contextmanager
    def act(kind: str, facts: dict[str, Any], secrets: Iterable[str] = ()) -> Iterator[None]:
        asyncio.run_coroutine_threadsafe(_record(audit, kind, facts, secrets), loop).result()
        try:
            yield
        except BaseException as error:
            loop.call_soon_threadsafe(audit.record, "act_failed", failed(kind, facts, error), secrets)
            raise

    return act


@contextmanager
def telling(audit: Audit, kind: str, facts: dict[str, Any]) -> Iterator[None]:
    """As `acting`, for what must not wait for the audit: a token that is revoked."""
    audit.record(kind, facts)
    try:
        yield
    except BaseException as error:
        audit.record("act_failed", failed(kind, facts, error))
        raise


def failed(kind: str, facts: dict[str, Any], error: BaseException) -> dict[str, Any]:
    """The facts of `act_failed`."""
    named = {name: value for name, value in facts.items() if name in NAMES}
    return {**named, "act": kind, "why": (str(error) or type(error).__name__)[:LONGEST]}


async def _record(audit: Audit, kind: str, facts: dict[str, Any], secrets: Iterable[str]) -> None:
    if audit.stored(kind, facts, secrets):
        return
    written: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def settle(how: Callable[[], None]) -> None:
        if not written.done():
            how()

    audit.wait(
        kind,
        facts,
        lambda: settle(lambda: written.set_result(None)),
        lambda why: settle(lambda: written.set_exception(NotRecorded(why))),
        secrets,
    )
    await written
