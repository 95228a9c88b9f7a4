"""Clients that attach while a turn runs: where their replay ends and the live stream begins, nothing may be seen."""

from __future__ import annotations

import asyncio
from pathlib import Path

from support.gateway_process import GatewayProcess, Start, Table
from support.rpc_peer import Message, RpcPeer
from support.session_client import Watch, by_agent, conversation, load


def stepped(folder: Path, steps: int) -> str:
    """A turn that waits before each step until `release` lets it go on."""
    lines = []
    for step in range(steps):
        lines += [f"say step {step}", f"wait-file {folder}/{step}", f"think {step}", f"tool t{step}"]
    return "\n".join([*lines, "say the end"])


def release(folder: Path, step: int) -> None:
    (folder / str(step)).touch()


class JoiningClients:
    """A running turn and the clients that joined it."""

    def __init__(self, gateway: GatewayProcess, session: str, workspace: Path, watch: Watch) -> None:
        self.gateway, self.session, self.workspace = gateway, session, workspace
        self._watch = watch
        self.clients: list[RpcPeer] = []
        self._loads: list[asyncio.Future[object]] = []

    async def over_the_socket(self, **capabilities: object) -> None:
        """One more client over the owner's socket; its load is on its way when this returns."""
        self._join(await self._watch(self.gateway, **capabilities))

    async def from_another_process(self, dragoman: Start, agents: Table) -> None:
        """One more client, of a gateway of its own on the same files."""
        other = await dragoman(agents=agents)
        await other.initialize()
        self._join(other)

    def _join(self, peer: RpcPeer) -> None:
        self.clients.append(peer)
        self._loads.append(asyncio.ensure_future(load(peer, self.session, self.workspace)))

    async def check(self) -> list[Message]:
        """After the turn: all have seen the same, once and in order. Returns what that is.

        One more turn shows when: clients that joined after the end of the first see the second.
        """
        await asyncio.gather(*self._loads)
        await self.gateway.prompt(self.session, "say settled")
        late = await self._watch(self.gateway)
        whole = conversation((await load(late, self.session, self.workspace)).replay)
        for number, client in enumerate(self.clients):
            await client.text(self.session, "settled")
            assert_same(conversation(client.of(self.session)), whole, f"client {number}")
        assert_same(conversation(self.gateway.of(self.session)), by_agent(whole), "the author")
        return whole


def assert_same(seen: list[Message], whole: list[Message], who: str) -> None:
    for index, (one, other) in enumerate(zip(seen, whole, strict=False)):
        assert one == other, f"event {index} of {who} is {one} instead of {other}"
    assert len(seen) == len(whole), f"{who} saw {len(seen)} events of {len(whole)}"
