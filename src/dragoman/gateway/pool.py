"""The pool of agent processes: one per session by default, shared if the agent's `share` says so."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable
from typing import TYPE_CHECKING

from dragoman.gateway.access.capabilities import fingerprint
from dragoman.gateway.access.mediation import check_level
from dragoman.gateway.agent import AgentConnection
from dragoman.gateway.json_types import JsonObject, with_own_meta
from dragoman.gateway.ports.agent import AgentHandle
from dragoman.gateway.ports.sandbox import Box
from dragoman.gateway.rewriting import quirks, reserved
from dragoman.gateway.runtime import Runtime
from dragoman.rpc.link import LinkHandler
from dragoman.wire.errors import RpcError, internal

if TYPE_CHECKING:
    from dragoman.gateway.access.client import Client
    from dragoman.gateway.session.session import Session

log = logging.getLogger(__name__)

Key = tuple[str, ...]

ANYWHERE = frozenset({"remote", "claude", "codex", "builtin"})
"""Kinds of agents that find a stored session from any folder: they run elsewhere, start a program per session, or are
our own. Any other may look for it only in the project of its process's working folder (gemini 0.61)."""


class Pool:
    def __init__(self, gateway: Runtime) -> None:
        self._gateway = gateway
        self._agents: set[AgentConnection] = set()
        self._spares: dict[Key, asyncio.Task[AgentConnection]] = {}
        """Agents started at `initialize`, each for the first session of its client."""
        self._shared: dict[Key, asyncio.Task[AgentConnection]] = {}
        self._asked: dict[Key, asyncio.Task[JsonObject]] = {}

    def agents_of(self, client: Client) -> list[AgentConnection]:
        """The live agents that this client's sessions use, and its spares."""
        used = [each.session.agent for each in client.attachments.values() if each.session.agent is not None]
        started = [agent for agent in self._agents if agent.client is client and agent.alive]
        return [agent for agent in dict.fromkeys([*started, *used]) if not agent.is_owner]

    def running(self) -> list[AgentConnection]:
        return [agent for agent in self._agents if agent.alive]

    def start_ahead(self, client: Client, name: str) -> asyncio.Task[AgentConnection]:
        """Start an agent before it is needed."""
        config = self._gateway.agent_config(name)
        box = self._gateway.box_for(name, None, None)
        if config.share == "all" and box is None:
            return self._shared_task(self._shared_key(client, name, ""), client, name, None)
        key = (str(client.key), name)
        task = self._spares.get(key)
        if task is None or _failed(task):
            task = self._spares[key] = self._gateway.spawn(
                self._launch(client, name, None, shared=False, box=box)
            )
        return task

    async def abilities(self, client: Client, name: str) -> JsonObject:
        """An agent's `initialize` result, from the cache or from an agent started for that."""
        gateway = self._gateway
        config, box = gateway.agent_config(name), gateway.box_for(name, None, None)
        cached = gateway.cached_capabilities(config, self.capabilities_sent(client, name, box), box)
        return cached if cached is not None else await self.describe(client, name)

    async def describe(self, client: Client, name: str) -> JsonObject:
        """The `initialize` result of an agent started for this alone; simultaneous calls share it."""
        key = self._shared_key(client, name, "")
        task = self._asked.get(key)
        if task is None:
            task = self._asked[key] = self._gateway.spawn(self._describe(client, name))
            task.add_done_callback(lambda _: self._asked.pop(key, None))
        return await asyncio.shield(task)

    async def _describe(self, client: Client, name: str) -> JsonObject:
        box = self._gateway.box_for(name, None, None)
        agent = await self._launch(client, name, None, shared=True, box=box)
        self.reap(agent)
        return agent.capabilities.result

    async def take(
        self,
        client: Client,
        name: str,
        cwd: str,
        workspace: str,
        sandbox: str | None = None,
        *,
        returning: bool = False,
    ) -> AgentConnection:
        """The agent for a session of this client, in the `sandbox` that the session asks for.

        `returning`: the agent has to load or resume a session, so its process must run in the session's folder.
        """
        share = self._gateway.agent_config(name).share
        box = self._gateway.box_for(name, cwd, workspace, sandbox)
        if share == "session":
            spare = await self._spare(client, name, cwd if returning else None) if box is None else None
            return spare or await self._launch(client, name, cwd, shared=False, box=box)
        # Different roots never share a sandbox, whatever `share` says.
        key = self._shared_key(
            client, name, workspace if share == "workspace" or box is not None else "", box
        )
        if box is not None:
            key = (*key, box.name, *_spelling(cwd, workspace))
        for _ in range(3):
            agent = await asyncio.shield(self._shared_task(key, client, name, cwd, box))
            if agent.alive and not (returning and _elsewhere(agent, cwd)):
                return agent
            if agent.alive:
                key = (*key, cwd)  # another agent, shared by sessions that are loaded in this folder
            else:
                self._shared.pop(key, None)  # the agent has died: try again
        raise agent.gone_error()

    async def take_for(self, session: Session, client: Client, *, returning: bool = True) -> AgentConnection:
        """The agent for a session that exists already."""
        sandbox = session.entry.sandbox
        return await self.take(
            client, session.agent_name, session.cwd, session.workspace, sandbox, returning=returning
        )

    async def borrow(self, client: Client, name: str) -> AgentConnection:
        """An agent for a request that belongs to no session: any running one, else one started ahead."""
        for agent in self.agents_of(client):
            if agent.name == name and agent.alive and agent.capabilities.result:
                return agent
        return await asyncio.shield(self.start_ahead(client, name))

    def forget(self, agent: AgentConnection) -> None:
        self._agents.discard(agent)
        for table in (self._spares, self._shared):
            for key, task in list(table.items()):
                if (
                    task.done()
                    and not task.cancelled()
                    and task.exception() is None
                    and task.result() is agent
                ):
                    del table[key]

    def reap(self, agent: AgentConnection) -> None:
        """End an agent that has no session left (G-057)."""
        if not agent.sessions and not agent.expecting and not agent.stopping:
            self.forget(agent)
            self._gateway.spawn(agent.stop())

    async def client_gone(self, client: Client) -> None:
        """End the agents that were started ahead for a client that is gone."""
        for key, task in list(self._spares.items()):
            if key[0] == str(client.key):
                del self._spares[key]
                task.cancel()
        spares = [
            each for each in self._agents if each.client is client and not each.shared and not each.sessions
        ]
        await asyncio.gather(*(agent.stop() for agent in spares))

    async def close(self) -> None:
        for task in [*self._spares.values(), *self._shared.values()]:
            task.cancel()
        await asyncio.gather(*(agent.stop() for agent in list(self._agents)))

    async def _spare(self, client: Client, name: str, folder: str | None) -> AgentConnection | None:
        """The agent that was started ahead; None if it is dead, or if its process does not run in a given `folder`."""
        task = self._spares.pop((str(client.key), name), None)
        if task is None:
            return None
        agent = await task
        if folder is not None and agent.alive and _elsewhere(agent, folder):
            self.reap(agent)
            return None
        return agent if agent.alive and agent.box is None else None

    def _shared_key(self, client: Client, name: str, workspace: str, box: Box | None = None) -> Key:
        return (name, fingerprint(self.capabilities_sent(client, name, box)), workspace)

    def _shared_task(self, key: Key, client: Client, name: str, cwd: str | None,
                     box: Box | None = None) -> asyncio.Task[AgentConnection]:  # fmt: skip
        task = self._shared.get(key)
        if task is None or _failed(task):
            task = self._shared[key] = self._gateway.spawn(
                self._launch(client, name, cwd, shared=True, box=box)
            )
        return task

    def capabilities_sent(self, client: Client, name: str, box: Box | None) -> JsonObject:
        """The client capabilities that are sent to this agent (G-032)."""
        config = self._gateway.agent_config(name)
        sent = client.capabilities.for_agent(serve_fs=config.serve_fs, serve_terminal=config.serve_terminal)
        if box is not None and box.apart:  # the gateway serves `fs`, not the client: see `services.py`
            sent.pop("fs", None)
            if not box.elsewhere:
                sent["fs"] = {"readTextFile": True, "writeTextFile": True}
        if "fs" in sent and not quirks.survives_fs(config.command):
            del sent["fs"]
        if config.kind in reserved.OURS:  # it asks for what rules say about every call
            sent = with_own_meta(sent, rules=True)
        return sent

    async def _launch(
        self, client: Client, name: str, cwd: str | None, *, shared: bool, box: Box | None
    ) -> AgentConnection:
        gateway = self._gateway
        if gateway.closing:  # nothing would end it
            raise internal("Dragoman is shutting down", "shutdown")
        config = gateway.agent_config(name)
        check_level(gateway.config.policy.require, name, config, boxed=box is not None)
        sent = self.capabilities_sent(client, name, box)
        agent = AgentConnection(gateway, name, config, client, shared=shared, box=box, cwd=cwd)
        agent.on_end = self.forget
        agent.folder = None if config.kind in ANYWHERE else os.path.realpath(cwd or ".")
        self._agents.add(agent)
        try:
            limit = gateway.config.limits.start_timeout

            def launch(handler: LinkHandler) -> Awaitable[AgentHandle]:
                return gateway.launcher.launch(name, config, handler, cwd, box, agent)

            result = await self._observed_start(name, agent.start(launch, sent, client.info, limit))
            gateway.remember_capabilities(config, sent, result, box)
            await client.agent_started(agent)
        except BaseException:  # no other code would end the process
            self._agents.discard(agent)
            gateway.spawn(agent.stop())
            raise
        return agent

    async def _observed_start(self, name: str, starting: Awaitable[JsonObject]) -> JsonObject:
        observed = self._gateway.witness.start(name)
        try:
            result = await starting
        except RpcError as error:
            observed.end("error", error.message)
            raise
        except BaseException as error:
            observed.end("cancelled" if isinstance(error, asyncio.CancelledError) else "error", str(error))
            raise
        observed.end("ok")
        return result


def _spelling(cwd: str, workspace: str) -> Key:
    """Part of a key that separates clients which spell the same folders differently: each gets its own spelling."""
    usual = cwd == os.path.realpath(cwd) and f"{cwd}/".startswith(f"{workspace.rstrip('/')}/")
    return () if usual else (cwd,)


def _elsewhere(agent: AgentConnection, folder: str) -> bool:
    """Whether the agent's process runs in another folder, if that matters for this agent."""
    return agent.folder is not None and agent.folder != os.path.realpath(folder)


def _failed(task: asyncio.Task[AgentConnection]) -> bool:
    """Whether a start has failed; the next caller then starts anew instead of getting the old error."""
    return task.done() and (task.cancelled() or task.exception() is not None)
