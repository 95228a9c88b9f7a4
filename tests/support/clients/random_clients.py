"""Clients that come, go, come back and prompt at random moments, in several processes, all in one session.

What is checked in the end: each has seen everything once and in order, whether it stayed, came late, or lost its
connection and went on after the last number that it had, in whichever process; also if the process that had the
session was killed in the middle of it.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from pathlib import Path

from support.clients.joining_clients import assert_same
from support.gateway_process import GatewayProcess
from support.rpc_peer import Message, RpcPeer, Turn, is_update
from support.session_client import SEQ, Watch, by_agent, conversation, load, resume

FLOOD = "flood 400 60"
MOMENTS_TO_DEATH = 100


@dataclass
class RandomClient:
    """A client with one view of the session, over one connection after the other."""

    peer: RpcPeer
    gateway: GatewayProcess
    seen: dict[int, Message] = field(default_factory=dict)
    """Of its former connections, by number."""
    prompted: bool = False

    def note(self, session: str) -> None:
        """What its connection said; nothing has a number twice, or after a higher one."""
        last = max(self.seen, default=0)
        for message in filter(is_update(session), self.peer.received):
            params = message["params"]
            seq = ((params.get("_meta") or {}).get("dragoman") or {}).get("seq")
            if seq is not None:
                assert seq > last, f"event {seq} came after event {last}"
                self.seen[seq] = params["update"]
                last = seq


class RandomClients:
    """The first of `gateways` has the session."""

    def __init__(
        self, gateways: list[GatewayProcess], session: str, workspace: Path, watch: Watch, seed: int
    ) -> None:
        self.gateways, self.session, self.workspace = list(gateways), session, workspace
        self.members: list[RandomClient] = []
        self._watch = watch
        self._random = random.Random(seed)
        self._turn: asyncio.Future[Turn] | None = None

    async def live(self, moments: int) -> None:
        if not self.members:
            await self.come()
        for _ in range(moments):
            moves = (self.come, self.come_back, self.prompt, self.look)
            await self._random.choices(moves, (2, 4, 3, 4))[0]()
        if self._turn is not None:
            await self._turn
            self._turn = None

    async def come(self) -> None:
        """A new client, which loads the session."""
        gateway = self._random.choice(self.gateways)
        peer = await self._watch(gateway, **SEQ)
        await load(peer, self.session, self.workspace)
        self.members.append(RandomClient(peer, gateway))

    async def come_back(self) -> None:
        """A client loses its connection, and resumes in any of the processes."""
        member = self._random.choice(self.members)
        if not member.prompted:  # a turn ends with its client's connection here
            await self._move(member)

    async def prompt(self) -> None:
        if self._turn is not None:
            assert (await self._turn).stop_reason == "end_turn"
        member = self._random.choice(self.members)
        member.prompted = True
        self._turn = asyncio.ensure_future(member.peer.start_prompt(self.session, FLOOD))

    async def look(self) -> None:
        """Let a client see a little more of the turn."""
        member = self._random.choice(self.members)
        if self._turn is not None and not self._turn.done():
            looking = asyncio.ensure_future(member.peer.next_message(is_update(self.session)))
            await asyncio.wait((looking, self._turn), return_when=asyncio.FIRST_COMPLETED)
            looking.cancel()

    async def kill_owner(self) -> None:
        """In the middle of a turn; its clients go on elsewhere, the others stay where they are."""
        await self.prompt()
        assert self._turn is not None
        for _ in range(self._random.randrange(MOMENTS_TO_DEATH)):
            await self.look()
        owner = self.gateways.pop(0)
        await owner.kill()
        await asyncio.wait((self._turn,))  # answered, or cut off with its client
        if self._turn.exception() is None:
            turn = self._turn.result()
            assert turn.error or turn.stop_reason == "end_turn"
        self._turn = None
        for member in self.members:
            if member.gateway is owner:
                await member.peer.ended()
                await self._move(member)

    async def check(self) -> list[Message]:
        """Compare each client with the whole conversation, which is returned."""
        last, late = [await self._watch(self._random.choice(self.gateways), **SEQ) for _ in range(2)]
        await load(last, self.session, self.workspace)
        await last.prompt(self.session, "say settled")
        whole = (await load(late, self.session, self.workspace)).replay
        for number, member in enumerate(self.members):
            await member.peer.text(self.session, "settled")
            member.note(self.session)
            seen = [member.seen[seq] for seq in sorted(member.seen)]
            part = by_agent if member.prompted else conversation
            assert_same(part(seen), part(whole), f"member {number}")
        return whole

    async def _move(self, member: RandomClient) -> None:
        await member.peer.close()
        member.note(self.session)
        member.gateway = self._random.choice(self.gateways)
        member.peer = await self._watch(member.gateway, **SEQ)
        await resume(member.peer, self.session, self.workspace, after=max(member.seen, default=0))
