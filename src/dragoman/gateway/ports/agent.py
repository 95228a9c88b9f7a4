"""The interface of a running agent: a link that speaks ACP, and control of the process behind it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Protocol

from dragoman.config.model import AgentConfig
from dragoman.rpc.link import Link, LinkHandler
from dragoman.rpc.request import OnReply, Request
from dragoman.wire.errors import RpcError

if TYPE_CHECKING:
    from dragoman.gateway.ports.sandbox import Box


@dataclass(frozen=True, slots=True)
class AgentEnd:
    """How an agent ended."""

    exit_code: int | None = None
    signal: str | None = None
    stderr_tail: str = ""
    reason: str | None = None
    """The cause as text, for an agent without a process of its own."""

    def describe(self) -> str:
        if self.reason is not None:
            return self.reason
        if self.signal is not None:
            return f"was ended by {self.signal}"
        if self.exit_code is not None:
            return f"exited with code {self.exit_code}"
        return "closed its output"


class AgentHandle(Link, Protocol):
    """A running agent."""

    @property
    def pid(self) -> int | None: ...

    def end(self) -> AgentEnd:
        """How the agent ended, as far as known."""

    async def has_process_since(self, moment: float) -> bool:
        """Whether a process that the agent started after `moment` (monotonic clock) still runs, as far as visible."""

    async def stop(self) -> None:
        """End the agent with its whole process tree: first by request, then by force, within a bounded time."""


class HookHandler(Protocol):
    """What decides about tool calls that an agent's hooks tell before they run."""

    def hook_called(self, session_id: str, params: bytes, answered: OnReply) -> Callable[[], None]:
        """Decide about the call of a permission question with these params; returns what cancels it.

        `session_id` is the agent's; `answered` is called with the answer to the question.
        """


class AgentUnavailable(Exception):
    """The agent cannot be started; the message says what to do about it."""


class Launcher(Protocol):
    """Starts agents by their configuration."""

    def identity(self, agent: AgentConfig) -> str | None:
        """The key of the capability cache: changes with the agent's program or arguments; None if unknown."""

    async def launch(
        self,
        name: str,
        agent: AgentConfig,
        handler: LinkHandler,
        cwd: str | None,
        box: Box | None = None,
        hooks: HookHandler | None = None,
    ) -> AgentHandle:
        """Start an agent, inside `box` if given; raises `AgentUnavailable`.

        With `hooks`, an agent that can be made to is started so that it tells every tool call before it runs.
        """


_PACKAGES = {"qwen-code": "qwen"}
"""Names of folders of programs whose file says nothing, such as `cli.js`."""


def program_names(command: Sequence[str]) -> list[str]:
    """Names by which a program may be known; its second word too, since the first may be an interpreter."""
    found: list[str] = []
    for word in command[:2]:
        path = PurePath(word)
        found += [path.stem, *(_PACKAGES.get(part, part) for part in path.parts[-3:-1])]
    return found


class CapabilityCache(Protocol):
    """Stores `initialize` results of agents between runs of the gateway."""

    def get(self, identity: str, fingerprint: str) -> dict[str, object] | None: ...

    def put(self, identity: str, fingerprint: str, result: dict[str, object]) -> None: ...


class Dialer(Protocol):
    async def dial(self, address: str, handler: LinkHandler) -> AgentHandle:
        """Connect to the address of an `Owner`; raises `AgentUnavailable`."""


class UpdateSink(Protocol):
    def receive(self, kind: str, line: bytes, size: int = -1) -> None: ...


class AgentSession(Protocol):
    """A session as its agent sees it."""

    id: str

    @property
    def agent_session_id(self) -> str: ...

    @property
    def updates(self) -> UpdateSink: ...

    def agent_request(self, request: Request) -> None: ...

    def agent_notification(self, method: str, params: bytes) -> None: ...

    def agent_gone(self, error: RpcError, *, expected: bool) -> None: ...

    def prompted(self, call: object) -> bool:
        """Whether `call` is the session's prompt at the agent, and its client reads the journal."""

    def notice(self, title: str, severity: str = "warning") -> None: ...
