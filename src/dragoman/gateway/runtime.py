"""What every part of the gateway may use: configuration, ports, background tasks, and which agent a session gets."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from weakref import WeakValueDictionary

from dragoman.config.model import AgentConfig, Config
from dragoman.config.sections.workspaces import rules_for
from dragoman.gateway.access.capabilities import fingerprint
from dragoman.gateway.json_types import JsonObject
from dragoman.gateway.ports.agent import CapabilityCache, Dialer, Launcher
from dragoman.gateway.ports.audit import Audit
from dragoman.gateway.ports.checkpoints import Checkpoints
from dragoman.gateway.ports.commits import Commits
from dragoman.gateway.ports.followers import Followers
from dragoman.gateway.ports.sandbox import Box, Boxes
from dragoman.gateway.ports.search import Search
from dragoman.gateway.ports.services import ServicesFactory
from dragoman.gateway.ports.store import Store
from dragoman.gateway.ports.witness import Several, Witness
from dragoman.gateway.ports.worktrees import Worktrees
from dragoman.rpc.byte_budget import ByteBudget
from dragoman.wire import limits
from dragoman.wire.errors import RpcError, internal, invalid_params

if TYPE_CHECKING:
    from dragoman.policy.decide import Policy
    from dragoman.policy.memory.file import Remembered

log = logging.getLogger(__name__)

T = TypeVar("T")


ReadSecrets = Callable[[Mapping[str, str], str], Awaitable[dict[str, str]]]
"""The values behind references; raises `RpcError`; the second argument says whose they are."""


class AgentDirectory(Protocol):
    """Agents by name."""

    def find(self, name: str) -> AgentConfig:
        """The agent's configuration; raises `RpcError` that suggests the nearest names."""

    def names(self) -> list[str]: ...

    def all(self) -> Mapping[str, AgentConfig]:
        """Every agent as it is configured, for lists."""


@dataclass(frozen=True, slots=True)
class Outside:
    """Everything that the gateway needs from outside."""

    agents: AgentDirectory
    launcher: Launcher
    cache: CapabilityCache
    services: ServicesFactory
    dialer: Dialer
    followers: Followers | None = None
    store: Store | None = None
    trouble: str | None = None
    """Why there is no store although one is configured."""
    boxes: Boxes | None = None
    policy_for: Callable[[str], Policy] | None = None
    """The policy for a workspace, which may narrow the general one; None: the configuration's rules for all."""
    remembered: Callable[[], Remembered] | None = None
    """Answers that people had us remember, opened at the first question; None: they end with the process."""
    policy_trouble: Callable[[str], str | None] = lambda workspace: None
    """Why a workspace's policy files are not what is in force; None if they are."""
    read_secrets: ReadSecrets | None = None
    witness: Witness = field(default_factory=Several)
    audit: Audit = field(default_factory=Audit)
    checkpoints: Checkpoints = field(default_factory=Checkpoints)
    search: Search | None = None
    worktrees: Worktrees | None = None
    commits: Commits | None = None


class Runtime:
    def __init__(self, config: Config, outside: Outside) -> None:
        self.config = config
        self.agents = outside.agents
        self.launcher = outside.launcher
        self.cache = outside.cache
        self.services = outside.services
        self.dialer = outside.dialer
        self.followers = outside.followers
        self.boxes = outside.boxes
        self.read_secrets = outside.read_secrets or _no_secrets
        self.policy_for = outside.policy_for or (lambda workspace: _policy_of(config))
        self._open_remembered = outside.remembered or _only_here
        self.policy_trouble = outside.policy_trouble
        self.store = outside.store
        self.usage = outside.store.usage if outside.store is not None else None
        self.trouble = outside.trouble
        self.witness = outside.witness
        self.audit = outside.audit
        self.checkpoints = outside.checkpoints
        self.search = outside.search
        self.worktrees = outside.worktrees
        self.commits = outside.commits
        self.closing = False
        self.said_goodbye = asyncio.Event()
        """Set at shutdown, when the links of all clients are closed."""
        self._request_budget = ByteBudget(limits.GATEWAY_REQUEST_BYTES)
        self._request_shares: WeakValueDictionary[str, ByteBudget] = WeakValueDictionary()
        """By the name of a token, as long as a client with that token is connected."""
        self.tasks: set[asyncio.Task[Any]] = set()

    @cached_property
    def remembered(self) -> Remembered:
        return self._open_remembered()

    @property
    def journaling(self) -> bool:
        return self.store is not None

    def agent_config(self, name: str) -> AgentConfig:
        return self.agents.find(name)

    def agent_for(self, cwd: str, asked: object) -> str:
        """The agent for a session of an unbound client (G-036)."""
        if isinstance(asked, str) and asked:
            return asked
        named = (rule.agent for rule in rules_for(cwd, self.config.workspaces) if rule.agent is not None)
        return next(named, self.config.default_agent)

    def box_for(
        self, name: str, cwd: str | None, workspace: str | None, wanted: str | None = None
    ) -> Box | None:
        """The sandbox for a session of an agent; before any session, one with an empty workspace."""
        if self.boxes is None or self.agent_config(name).kind == "remote":  # remote agents have no sandbox
            if wanted is not None:
                raise invalid_params(f"There is no sandbox {wanted} for the agent {name}", "sandbox")
            return None
        return self.boxes.find(name, self.agent_config(name), cwd, workspace, wanted)

    def cached_capabilities(
        self, config: AgentConfig, sent: JsonObject, box: Box | None = None
    ) -> JsonObject | None:
        identity = (box or self.launcher).identity(config)
        return self.cache.get(identity, fingerprint(sent)) if identity is not None else None

    def remember_capabilities(
        self, config: AgentConfig, sent: JsonObject, result: JsonObject, box: Box | None = None
    ) -> None:
        """Update the cache if the agent's result has changed."""
        identity = (box or self.launcher).identity(config)
        if identity is not None and self.cache.get(identity, fingerprint(sent)) != result:
            self.cache.put(identity, fingerprint(sent), result)

    def request_share(self, token: str) -> ByteBudget:
        """The byte budget for requests in flight of all clients with this token."""
        share = self._request_shares.get(token)
        if share is None:
            share = ByteBudget(limits.TOKEN_REQUEST_BYTES, self._request_budget)
            self._request_shares[token] = share
        return share

    def spawn(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run a coroutine in the background; its errors are logged."""
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self._finished)
        return task

    def _finished(self, task: asyncio.Task[Any]) -> None:
        self.tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            if isinstance(error, RpcError):
                log.info("background work failed: %s", error.message)
            else:
                log.error("background work failed", exc_info=error)


async def _no_secrets(references: Mapping[str, str], whose: str) -> dict[str, str]:
    if references:
        raise internal(f"{whose} lacks a secret: this gateway reads none")
    return {}


def _only_here() -> Remembered:
    from dragoman.policy.memory.file import Remembered

    return Remembered(None)


def _policy_of(config: Config) -> Policy:
    from dragoman.policy.decide import policy_of  # with the first question

    return policy_of(config.policy)
