"""What must hold after any run of a simulated world: the rules that every client may rely on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace

from support.simulation.client import ATTACHES, Call, Event, SimulatedClient
from support.simulation.world import World

ENDS = ("session/close", "session/delete")


def check_all(world: World) -> None:
    """Call after `World.settle`; problems are noted in the world."""
    world.read_journals()
    for client in world.clients:
        for session in client.streams:
            if (
                session not in world.rewound
            ):  # what a replay leaves out there depends on when it was asked for
                StreamCheck(world, client, session).check()
        for call in client.calls.values():
            error = (call.answer or {}).get("error") or {}
            world.expect("Internal error" not in error.get("message", ""), f"{client}: {call}")
    for script in set(world.performed):
        world.expect(world.performed.count(script) == 1, f"{script} was performed twice")
    for process in world.processes:
        asked = sum(len(agent.asked) for agent in process.launcher.running)
        waiting = sum(len(session.questions) for session in process.gateway.sessions.values())
        world.expect(asked <= waiting, f"{asked} questions of agents are open, {waiting} wait for a client")
    for session in dict.fromkeys(world.sessions):
        _check_ended(world, session)


def surely_attached(world: World, session: str) -> list[SimulatedClient]:
    """Present clients that came to a session after all its closes were answered."""
    ends = [call for call in _calls(world, session) if call.method in ENDS and call.received]
    found = []
    for client in world.present:
        came = [call for call in _own_calls(client, session) if call.method in ATTACHES]
        if came and came[-1].ok and all(0 < end.replied < came[-1].replied for end in ends):
            found.append(client)
    return found


@dataclass(frozen=True)
class Reading:
    """One way to explain what a client was sent."""

    last: int | None = None
    """The place in the story of the last thing that the client saw."""
    starts: tuple[int, ...] = ()
    """Where in the story replays begin that were asked for and did not begin yet."""
    gaps: int = 0
    """How often the client asked to go on without what it missed, and nothing came since."""

    def with_start(self, place: int) -> Reading:
        return replace(self, starts=tuple(sorted((*self.starts, place))))

    def with_gap(self) -> Reading:
        return replace(self, gaps=self.gaps + 1)

    def saw(self, place: int) -> Iterator[Reading]:
        """The explanations after the next thing was seen; none if it cannot be next."""
        if self.last is not None and place == self.last + 1:
            yield replace(self, last=place)
        if place in self.starts:
            left = list(self.starts)
            left.remove(place)
            yield replace(self, last=place, starts=tuple(left))
        if self.gaps and (self.last is None or place > self.last):
            yield replace(self, last=place, gaps=self.gaps - 1)


class StreamCheck:
    """What one client was sent of one session: nothing twice, nothing left out, everything as it is stored."""

    def __init__(self, world: World, client: SimulatedClient, session: str) -> None:
        self.world, self.client, self.session = world, client, session
        self.entries = client.streams[session].entries
        self.seqs = world.story(session)
        self.order = list(self.seqs)
        self.readings: set[Reading] = {Reading()}
        """All ways to explain what was sent so far: it does not say which of several requests it answers."""
        self.seen: list[str] = []

    def check(self) -> None:
        under_way: dict[Call, int] = {}
        for entry in self.entries:
            if isinstance(entry, Event):
                self._event(entry)
            elif entry not in under_way:
                under_way[entry] = len(self.seen)
                self._sent(entry)
            elif entry.ok:
                self._answered(entry, set(self.seen[under_way[entry] :]))

    def _sent(self, call: Call) -> None:
        if call.method in ("session/new", "session/load"):
            self.readings = {reading.with_start(0) for reading in self.readings}
        elif call.method == "session/resume":
            after = call.params.get("_meta", {}).get("dragoman", {}).get("afterSeq")
            if after is None:
                self.readings = {reading.with_gap() for reading in self.readings}
            else:
                later = [place for place, text in enumerate(self.order) if self.seqs[text] > after]
                start = later[0] if later else len(self.order)
                self.readings = {reading.with_start(start) for reading in self.readings}

    def _answered(self, call: Call, seen_since: set[str]) -> None:
        if call.method == "session/load":
            history = [text for text in self.order if self.seqs[text] <= call.known]
            missing = [text for text in history if text not in seen_since]
            self._expect(not missing, f"{call} came before {missing}")
        elif call.method == "session/prompt" and call.stop_reason == "end_turn":
            text = call.params["prompt"][0]["text"]
            missing = [each for each in self.world.said.get(text, []) if each not in self.seen]
            self._expect(not missing, f"{call} came before {missing}")
            self._expect(text in self.world.performed, f"{call} was not performed")

    def _event(self, event: Event) -> None:
        if event.seq is not None:
            line = self.world.journals.get(self.session, {}).get(event.seq, b"0{}")
            stored = json.loads(line[1:]).get("params", {}).get("update")
            self._expect(stored == event.update, f"event {event} is stored as {line!r}")
        if event.update.get("sessionUpdate") != "agent_message_chunk":
            return
        text = event.text
        if text not in self.seqs:
            self._expect(False, f"{event} is in no journal")
            return
        if self.client.numbers:
            self._expect(event.seq == self.seqs[text], f"{event} has not its number")
        self.seen.append(text)
        self._place(event, self.order.index(text))

    def _place(self, event: Event, place: int) -> None:
        left = {after for reading in self.readings for after in reading.saw(place)}
        before = self.seen[-2] if len(self.seen) > 1 else None
        self._expect(bool(left), f"{event} came after {before}; the story is {self.order}")
        self.readings = left or {Reading(place)}

    def _expect(self, truth: bool, problem: str) -> None:
        if not truth:
            self.world.expect(False, f"{self.client}, {self.session}: {problem}\n    {self.entries}")


def _check_ended(world: World, session: str) -> None:
    """A session that was closed or deleted gives no success that pretends it lives."""
    ended = [call for call in _calls(world, session) if call.method in ENDS and call.ok and call.replied]
    for end in ended:
        for client in world.clients:
            calls = _own_calls(client, session)
            came = [call for call in calls if call.method in ATTACHES and call.ok]
            tried = [call for call in calls if call.method in ATTACHES]
            for call in calls:
                if end.method == "session/delete" and call in came:
                    world.expect(call.replied < end.replied, f"{call} of {client} succeeded after {end}")
                if call.method != "session/prompt" or not call.ok or call.sent < end.replied:
                    continue
                # A client is attached before its load is answered: a prompt may come in between, also if the load
                # is then cancelled.
                since = [
                    each
                    for each in tried
                    if end.received < each.replied
                    and each.received < call.received
                    and (each.ok or call.sent < each.replied)
                ]
                stopped = call.stop_reason == "cancelled"
                world.expect(bool(since) or stopped, f"{call} of {client} succeeded after {end}")


def _calls(world: World, session: str) -> list[Call]:
    return [call for client in world.clients for call in _own_calls(client, session)]


def _own_calls(client: SimulatedClient, session: str) -> list[Call]:
    return [call for call in client.calls.values() if call.session == session]
