"""`kill -9` of a gateway at a random moment while its sessions stream, again and again.

What is checked after each round, by a new process on the same files: every session loads; its replay begins with the
replay of the round before, goes on with exactly what the clients saw live, in order, and may end with what was stored
but not seen any more; the numbers of its events have no gap.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from pathlib import Path

from support.gateway_process import GatewayProcess, Table
from support.rpc_peer import Message, RpcPeer, is_update
from support.session_client import SEQ, TornFraming, attach, by_agent, conversation, load, resumable_agent
from support.store.journal_reader import Event, read_event, read_lines

SESSIONS = 8
WATCHERS, WATCHED = 3, 3
"""Clients that watch, and the sessions that each of them looks at."""
AGENTS: Table = {"scripted": resumable_agent("--session-ids", "s{pid}-")}
SCRIPT = "say round {round} begins\ntool t{round}\nthink hm\ntoolopen o{round}\nflood 1000 100"
MOST_SEEN = 8 * 100
"""Messages of the streaming client after which the gateway is killed at the latest."""


@dataclass
class Track:
    """What is known of one session."""

    replay: list[Message] = field(default_factory=list)
    seen: list[Message] = field(default_factory=list)
    """Live, since that replay."""
    numbered: dict[int, Message] = field(default_factory=dict)
    """What a client that wants numbers was told, by number, in all rounds."""
    lines: list[bytes] = field(default_factory=list)
    """The journal after that replay, and the same as what it says."""
    events: list[Event] = field(default_factory=list)


class KillLoop:
    def __init__(self, home: Path, workspace: Path, seed: int) -> None:
        self.home, self.workspace = home, workspace
        self.random = random.Random(seed)
        self.tracks: dict[str, Track] = {}
        self.events = 0
        self.round = 0

    async def run(self, rounds: int) -> None:
        for _ in range(rounds):
            await self.one_round()
        gateway = await self.start()
        try:
            await self.load_all(gateway)
        finally:
            await gateway.stop()

    async def one_round(self) -> None:
        self.round += 1
        gateway = await self.start()
        watchers: list[RpcPeer] = []
        try:
            await self.load_all(gateway)
            while len(self.tracks) < SESSIONS:
                self.tracks[await gateway.new_session(self.workspace)] = Track()
            for _ in range(WATCHERS):
                watchers.append(await attach(gateway, TornFraming(), **SEQ))
            await self.stream_and_kill(gateway, watchers)
        finally:
            for watcher in watchers:
                await watcher.close()
            await gateway.stop()

    async def start(self) -> GatewayProcess:
        config = {"default_agent": "scripted", "log": {"level": "warning"}, "agents": AGENTS}
        gateway = await GatewayProcess.start(
            self.home, "acp", "scripted", config=config, framing=TornFraming()
        )
        await gateway.initialize()
        return gateway

    # One round

    async def stream_and_kill(self, gateway: GatewayProcess, watchers: list[RpcPeer]) -> None:
        """Prompt all sessions, watch some from elsewhere, and kill in the middle of it."""
        loads = [
            asyncio.ensure_future(load(watcher, session, self.workspace))
            for watcher in watchers
            for session in self.random.sample(list(self.tracks), WATCHED)
        ]
        start = len(gateway.received)
        for session in self.tracks:
            script = SCRIPT.format(round=self.round)
            blocks = [{"type": "text", "text": script}]
            gateway.start_request("session/prompt", {"sessionId": session, "prompt": blocks})
        count = start + self.random.randint(0, MOST_SEEN)
        await gateway.next_message(lambda _: len(gateway.received) >= count)
        await gateway.kill()
        await asyncio.gather(gateway.ended(), *(watcher.ended() for watcher in watchers))
        await asyncio.gather(*loads, return_exceptions=True)  # some were cut off
        self.note(gateway, start, watchers)

    def note(self, gateway: GatewayProcess, start: int, watchers: list[RpcPeer]) -> None:
        for session, track in self.tracks.items():
            matches = is_update(session)
            live = [m["params"]["update"] for m in gateway.received[start:] if matches(m)]
            track.seen = by_agent(live)
            self.events += len(track.seen)
            for watcher in watchers:
                for message in filter(matches, watcher.received):
                    self.number(track, message["params"])

    def number(self, track: Track, params: Message) -> None:
        seq = (params.get("_meta") or {}).get("dragoman", {}).get("seq")
        if seq is None:
            assert not conversation([params["update"]]), f"without a number: {params}"
            return
        former = track.numbered.setdefault(seq, params["update"])
        assert former == params["update"], f"event {seq} was {former} and is now {params['update']}"

    # What is left of it

    async def load_all(self, gateway: GatewayProcess) -> None:
        loads = [load(gateway, session, self.workspace) for session in self.tracks]
        for (session, track), loaded in zip(self.tracks.items(), await asyncio.gather(*loads), strict=True):
            self.compare(session, track, conversation(loaded.replay))
            self.compare_journal(session, track, conversation(loaded.replay))

    def compare(self, session: str, track: Track, replay: list[Message]) -> None:
        where = f"{session} after round {self.round}"
        known = len(track.replay)
        assert replay[:known] == track.replay, f"the past of {where} has changed"
        rest = by_agent(replay[known:])
        for index, update in enumerate(track.seen):
            stored = rest[index] if index < len(rest) else None
            assert stored == update, (
                f"event {index} of {where} was seen as {update} and is stored as {stored}"
            )
        track.replay, track.seen = replay, []

    def compare_journal(self, session: str, track: Track, replay: list[Message]) -> None:
        """The file itself: gapless, and with the numbers under which events were shown."""
        lines, known = read_lines(self.home, session), len(track.lines)
        assert lines[:known] == track.lines, f"the journal of {session} has changed in round {self.round}"
        track.lines = lines
        track.events += [read_event(seq, line) for seq, line in enumerate(lines[known:], known + 1)]
        stored = [event.body["params"]["update"] for event in track.events if event.tag in "UP"]
        assert stored == replay, f"{session} replays something else than it stores"
        for seq, update in track.numbered.items():
            event = track.events[seq - 1] if seq <= len(lines) else None
            assert event and event.tag in "UPu", f"event {seq} of {session} was seen and is {event}"
            assert event.body["params"]["update"] == update
