"""Two pages that act in one stored session at nearly the same time, in a simulated world.

Each test runs one world per distance between the two commands, in turns of the event loop.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from support.simulation.page import SimulatedPage, bridge_of
from support.simulation.process import PARK_AFTER
from support.simulation.world import World

DISTANCES = range(0, 42, 2)


class Race:
    """A stored session with a held message, which no client is attached to, and two pages of its process."""

    def __init__(self) -> None:
        self.world = World(seed=0, most_delay=0)
        self.process = self.world.start_process(durable=True)
        self._bridge = bridge_of(self.process)
        client = self.world.add_client(self.process)
        new = self.world.new(client)
        self.world.loop.rest()
        assert new.session is not None
        self.session = new.session
        client.leave()
        self.held = self._hold_a_message()
        self.world.loop.pass_time(PARK_AFTER + 1)
        assert not self.loaded
        self.pages = self._page(), self._page()
        self.world.loop.rest()

    @property
    def loaded(self) -> bool:
        return self.session in self.process.gateway.sessions

    def queue(self) -> list[object]:
        """The queue as it was last stored."""
        self.world.read_journals()
        records = [json.loads(line[1:]) for _, line in sorted(self.world.journals[self.session].items())]
        return next(each["queue"] for each in reversed(records) if each.get("dragoman") == "queue")

    def _page(self) -> SimulatedPage:
        return SimulatedPage(self.process, self._bridge)

    def _hold_a_message(self) -> str:
        """Queue a message behind a turn that is stopped then; returns its id."""
        page = self._page()
        page.send("send_message", self.session, content=json.dumps({"stay": True}))
        self.world.loop.rest()
        held = page.send("send_message", self.session, content="later")
        self.world.loop.rest()
        page.send("cancel_turn", self.session)
        self.world.loop.rest()
        page.leave()
        return held


@contextmanager
def race() -> Iterator[Race]:
    running = Race()
    try:
        yield running
        running.world.close()
        running.world.check()
    finally:
        running.world.dispose()


@pytest.mark.parametrize("distance", DISTANCES)
def test_two_pages_that_act_at_once_in_a_stored_session_do_not_unload_it_under_each_other(
    distance: int,
) -> None:
    with race() as each:
        one, two = each.pages
        assert len(each.queue()) == 1
        rename = one.send("rename_session", each.session, title="Another title")
        each.world.loop.turns(distance)
        drop = two.send("drop_queued", each.session, queuedId=each.held)
        each.world.loop.rest()
        answers = [one.answer(rename), two.answer(drop)]
        assert [answer and answer["type"] for answer in answers] == ["ack", "ack"], answers
        assert each.queue() == []
        assert not each.loaded, "it is unloaded when the last command has ended"


def test_commands_of_a_page_that_leaves_end_although_the_agent_never_answers() -> None:
    with race() as each:
        page, _ = each.pages
        loop, process = each.world.loop, each.process
        before = set(loop.tasks_of(process))
        page.send("load_session", each.session)
        page.send("send_message", each.session, content=json.dumps({"say": 1}))
        loop.rest()
        page.send("change_mode", each.session, modeId="silent")
        loop.rest()
        assert set(loop.tasks_of(process)) - before, "the command waits for the agent"
        page.leave()
        loop.rest()
        assert not set(loop.tasks_of(process)) - before
