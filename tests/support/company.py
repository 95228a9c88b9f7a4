"""Clients that come, go, come back and prompt at random moments, in several processes, all in one session.

What is checked in the end: each has seen everything once and in order, whether it stayed, came late, or lost its
connection and went on after the last number that it had, in whichever process.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from pathlib import Path

from support.attaching import SEQ, Watch, by_agent, conversation, load, resume
from support.gateway import Dragoman
from support.rpc_peer import Message, RpcPeer, Turn, is_update
from support.seam import assert_same

FLOOD = "flood 400 60"


@dataclass
class Member:
    """Somebody with one view of the session, over one connection after the other."""

    peer: RpcPeer
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


class Company:
    def __init__(
        self, gateways: list[Dragoman], session: str, workspace: Path, watch: Watch, seed: int
    ) -> None:
        self.gateways, self.session, self.workspace = gateways, session, workspace
        self.members: list[Member] = []
        self._watch = watch
        self._random = random.Random(seed)
        self._turn: asyncio.Future[Turn] | None = None

    async def live(self, moments: int) -> None:
        await self.come()
        for _ in range(moments):
            await self._random.choices((self.come, self.return_, self.prompt, self.move_on), (2, 4, 3, 4))[
                0
            ]()
        if self._turn is not None:
            await self._turn

    async def come(self) -> None:
        """Somebody new, who loads the session."""
        peer = await self._connect()
        await load(peer, self.session, self.workspace)
        self.members.append(Member(peer))

    async def return_(self) -> None:
        """Somebody loses the connection, and goes on in whichever process."""
        member = self._random.choice(self.members)
        if member.prompted:  # a turn ends with its client's connection here
            return
        await member.peer.close()
        member.note(self.session)
        member.peer = await self._connect()
        await resume(member.peer, self.session, self.workspace, after=max(member.seen, default=0))

    async def prompt(self) -> None:
        if self._turn is not None:
            assert (await self._turn).stop_reason == "end_turn"
        member = self._random.choice(self.members)
        member.prompted = True
        self._turn = asyncio.ensure_future(member.peer.start_prompt(self.session, FLOOD))

    async def move_on(self) -> None:
        """Let somebody see a little more."""
        member = self._random.choice(self.members)
        if self._turn is not None and not self._turn.done():
            moving = asyncio.ensure_future(member.peer.next_message(is_update(self.session)))
            await asyncio.wait((moving, self._turn), return_when=asyncio.FIRST_COMPLETED)
            moving.cancel()

    async def check(self) -> list[Message]:
        """Everybody against the whole story, which is returned."""
        last = await self._connect()
        await load(last, self.session, self.workspace)
        await last.prompt(self.session, "say settled")
        late = await self._connect()
        whole = (await load(late, self.session, self.workspace)).replay
        for number, member in enumerate(self.members):
            await member.peer.text(self.session, "settled")
            member.note(self.session)
            seen = [member.seen[seq] for seq in sorted(member.seen)]
            part = by_agent if member.prompted else conversation
            assert_same(part(seen), part(whole), f"member {number}")
        return whole

    async def _connect(self) -> RpcPeer:
        return await self._watch(self._random.choice(self.gateways), **SEQ)
