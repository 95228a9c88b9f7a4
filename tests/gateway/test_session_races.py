"""Two commands at nearly the same time: races that `test_session_machine` found, each in its smallest form.

Each test runs one simulated world (`support.simulation`) per distance between the two commands, in turns of the event
loop, so that the second one meets the first at every point of its way.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import Context

import pytest

from support.simulation.checks import check_all, surely_attached
from support.simulation.client import Call, SimulatedClient
from support.simulation.process import PARK_AFTER
from support.simulation.world import World

DISTANCES = range(26)


class Race:
    """A world with a session of the first of two processes, where two turns were taken; each has a client."""

    def __init__(self, agent: str, kind: str, *, durable: bool) -> None:
        self.world = World(seed=0, most_delay=0)
        self.first, self.second = self.world.start_process(durable=durable), self.world.start_process()
        self.here, self.there = self.client(kind), self.world.add_client(self.second)
        new = self.world.new(self.here, agent)
        self.world.loop.rest()
        assert new.session is not None
        self.session = new.session
        for _ in range(2):
            self.world.prompt(self.here, self.session, say=2)
            self.world.loop.rest()

    def client(self, kind: str = "network") -> SimulatedClient:
        """One more client of the first process."""
        return self.world.add_client(self.first, kind)

    def park(self) -> None:
        self.world.loop.pass_time(PARK_AFTER + 1)

    def load(self, client: SimulatedClient) -> Call:
        return self.world.load(client, self.session)

    def resume(self, client: SimulatedClient, after: int | None = None) -> Call:
        return self.world.resume(client, self.session, after)

    def end(self, client: SimulatedClient, how: str) -> Call:
        return client.call(f"session/{how}", {}, self.session)

    def turns(self, count: int) -> None:
        self.world.loop.turns(count)

    def finish(self) -> None:
        """Everything comes to its end and keeps the rules; who came last is really attached."""
        self.world.settle()
        for client in surely_attached(self.world, self.session)[-1:]:
            prompt = self.world.prompt(client, self.session, say=1)
            self.world.loop.pass_time(60.0)
            self.world.expect(prompt.ok, f"{client} is attached, but {prompt}")
        check_all(self.world)
        self.world.close()
        self.world.check()


@contextmanager
def race(agent: str = "loads", kind: str = "network", *, durable: bool = False) -> Iterator[Race]:
    """`durable`: the first process stores in a thread."""
    running = Race(agent, kind, durable=durable)
    try:
        yield running
        running.finish()
    finally:
        running.world.dispose()


def at_every_distance(run: Callable[[int], None]) -> None:
    for distance in DISTANCES:
        try:
            run(distance)
        except AssertionError as error:
            raise AssertionError(f"at a distance of {distance} turns: {error}") from error


def test_a_load_that_a_close_cuts_off_fails_or_has_its_whole_history() -> None:
    def run(distance: int) -> None:
        with race() as each:
            each.park()
            load = each.load(each.client())
            each.turns(distance)
            close = each.end(each.here, "close")
            each.world.settle()
            assert close.ok
            assert load.ok or "closed" in json.dumps(load.answer)

    at_every_distance(run)


def test_a_load_during_a_close_gets_a_session_that_lives() -> None:
    def run(distance: int) -> None:
        with race(agent="resumes") as each:
            late = each.client()
            close = each.end(each.here, "close")
            each.turns(distance)
            load = each.load(late)
            each.world.settle()
            assert close.ok and load.ok

    at_every_distance(run)


def test_a_resume_during_a_close_gets_a_session_that_lives() -> None:
    def run(distance: int) -> None:
        with race() as each:
            each.park()
            resume = each.resume(each.client())
            each.turns(distance)
            close = each.end(each.here, "close")
            each.world.settle()
            assert close.ok and resume.ok

    at_every_distance(run)


def test_a_prompt_behind_a_load_that_is_not_answered_yet_fails_or_runs_in_the_loaded_session() -> None:
    def run(distance: int) -> None:
        with race(kind="editor", durable=True) as each:
            close = each.end(each.here, "close")
            each.world.loop.rest()
            load = each.load(each.here)
            each.turns(2 * distance)
            prompt = each.world.prompt(each.here, each.session, say=1)
            each.world.settle()
            assert close.ok and load.ok
            assert prompt.stop_reason == "end_turn" or "Session not found" in json.dumps(prompt.answer)

    at_every_distance(run)


def test_a_session_whose_last_editor_leaves_is_there_for_the_next_client() -> None:
    def run(distance: int) -> None:
        with race(kind="editor") as each:
            late = each.client()
            each.here.leave()
            each.turns(distance)
            load = each.load(late)
            each.world.settle()
            assert load.ok

    at_every_distance(run)


def test_nothing_is_published_in_a_session_that_was_closed_while_its_agent_restarted() -> None:
    def run(distance: int) -> None:
        with race(agent="forgets") as each:
            each.park()
            prompt = each.world.prompt(each.here, each.session, say=1)
            each.turns(distance)
            close = each.end(each.here, "close")
            each.world.settle()
            assert close.ok and prompt.answer is not None

    at_every_distance(run)


def test_the_end_of_a_turn_that_a_close_cancels_is_stored() -> None:
    def run(distance: int) -> None:
        with race(durable=True) as each:
            prompt = each.world.prompt(each.here, each.session, say=1, stay=True)
            each.turns(distance)
            each.end(each.here, "close")
            each.world.settle()
            assert prompt.ok
            each.world.read_journals()
            records = [line for line in each.world.journals[each.session].values() if b'"turn_ended"' in line]
            assert len(records) == 3

    at_every_distance(run)


def test_a_question_that_meets_the_close_of_its_session_is_cancelled() -> None:
    def run(distance: int) -> None:
        with race() as each:
            prompt = each.world.prompt(each.here, each.session, ask=True)
            each.turns(distance)
            close = each.end(each.here, "close")
            each.world.settle()
            assert close.ok and prompt.stop_reason == "cancelled"

    at_every_distance(run)


def test_a_shared_agent_is_answered_a_question_of_a_session_that_ends_while_another_begins() -> None:
    def run(distance: int) -> None:
        with race(agent="shares") as each:
            other = each.world.new(each.client(), "shares")  # the agent goes on for it
            each.world.loop.rest()
            each.world.prompt(each.here, each.session, ask=True)
            each.turns(distance // 4)
            each.end(each.here, "close")
            each.turns(distance % 4)
            new = each.world.new(each.here, "shares")
            each.world.settle()
            assert new.ok and other.ok

    at_every_distance(run)


def test_a_session_deleted_in_one_process_is_not_brought_back_by_a_resume_in_another() -> None:
    def run(distance: int) -> None:
        with race() as each:
            each.park()
            resume = each.resume(each.there)
            each.turns(distance)
            delete = each.end(each.here, "delete")
            each.world.settle()
            assert delete.ok != resume.ok
            assert (each.world.home / "journal" / each.session).exists() == resume.ok

    at_every_distance(run)


def test_a_delete_wins_over_resumes_that_are_under_way_in_its_process() -> None:
    def run(distance: int) -> None:
        with race() as each:
            each.park()
            late = each.client()
            each.resume(late)
            each.turns(distance)
            delete = each.end(each.here, "delete")
            again = each.resume(late)
            each.world.settle()
            assert delete.ok and again.answer is not None
            assert not (each.world.home / "journal" / each.session).exists()

    at_every_distance(run)


def test_a_session_that_its_owner_closed_is_not_taken_over_by_those_who_followed_it() -> None:
    def run(distance: int) -> None:
        with race() as each:
            each.resume(each.there)
            each.turns(2 * distance)
            each.end(each.here, "close")
            each.world.loop.rest()
            each.first.kill()
            each.world.loop.rest()
            each.world.prompt(each.there, each.session, say=1)
            each.world.loop.pass_time(60.0)

    at_every_distance(run)


def test_a_rewind_that_meets_the_close_of_its_session_stores_nothing_in_it() -> None:
    def run(distance: int) -> None:
        with race("resumes", "editor") as each:
            each.world.rewind(each.here, each.session, {"retry": True})
            each.turns(distance)
            each.end(each.here, "close")
            each.world.settle()

    at_every_distance(run)


def test_a_load_that_is_cancelled_leaves_the_resume_before_it_whole() -> None:
    def run(distance: int) -> None:
        with race(kind="editor") as each:
            client = each.world.add_client(each.second, "editor")
            each.load(each.there)
            next(iter(each.first.launcher.running)).exit()
            each.turns(1)
            each.world.prompt(each.here, each.session, say=1)
            each.resume(client, 0)
            each.turns(distance + 10)
            each.load(client)
            each.turns(1)
            client.cancel_last()
            each.world.settle()

    at_every_distance(run)


@pytest.mark.parametrize("kind", ["editor", "network"])
def test_a_rewind_that_meets_the_deletion_of_its_session_ends_in_order(kind: str) -> None:
    def run(distance: int) -> None:
        with race(kind=kind) as each:
            each.end(each.here, "delete")
            each.turns(distance)
            each.world.rewind(each.here, each.session, {"retry": True})
            each.world.settle()
        with race(kind=kind) as each:
            each.world.rewind(each.here, each.session, {"retry": True})
            each.turns(distance)
            each.end(each.here, "delete")
            each.world.settle()

    at_every_distance(run)


def test_an_agent_gets_no_prompt_while_its_gateway_ends() -> None:
    def run(distance: int) -> None:
        with race() as each:
            each.world.prompt(each.here, each.session, say=1, stay=True)
            each.world.loop.rest()
            each.first.shut_down()
            each.turns(distance)
            each.world.prompt(each.here, each.session, say=1)
            each.world.settle()

    at_every_distance(run)


def test_a_gateway_that_ends_leaves_no_agent_that_was_just_starting() -> None:
    def run(distance: int) -> None:
        with race(agent="forgets") as each:
            each.park()
            each.resume(each.here)
            each.turns(distance)
            each.first.shut_down()
            each.world.settle()

    at_every_distance(run)


def test_a_load_whose_owner_ends_before_the_answer_does_not_replay_twice() -> None:
    def run(distance: int) -> None:
        with race(agent="forgets") as each:
            each.park()
            each.load(each.there)
            each.turns(2 * distance)
            each.first.shut_down()
            each.world.settle()

    at_every_distance(run)


def test_two_loads_whose_owner_ends_before_the_answers_replay_once_each() -> None:
    def run(distance: int) -> None:
        with race() as each:
            for agent in list(each.first.launcher.running):
                agent.exit()  # the owner answers a load when its agent is back
            each.load(each.there)
            each.load(each.there)
            each.turns(2 * distance)
            each.first.kill()
            each.world.settle()

    at_every_distance(run)


def test_a_resume_of_an_attached_client_whose_owner_ends_replays_once() -> None:
    def run(distance: int) -> None:
        with race() as each:
            each.load(each.there)
            each.world.loop.rest()
            for agent in list(each.first.launcher.running):
                agent.exit()  # the owner answers a resume when its agent is back
            each.resume(each.there, after=0)
            each.turns(2 * distance)
            each.first.kill()
            each.world.settle()

    at_every_distance(run)


def test_a_replay_to_an_attached_client_that_its_owners_end_cuts_off_goes_on_where_it_was_cut() -> None:
    def run(distance: int) -> None:
        with race() as each:
            each.world.prompt(each.here, each.session, say=60)  # more than is sent of a replay at once
            each.load(each.there)
            each.world.loop.rest()
            each.load(each.there)
            each.turns(distance)
            each.first.kill()
            each.world.settle()
            each.world.prompt(each.there, each.session, say=1)
            each.world.settle()

    at_every_distance(run)


def test_a_load_that_is_cancelled_while_its_session_is_closed_is_answered_once() -> None:
    def run(distance: int) -> None:
        with race() as each:
            each.park()
            late = each.client()
            load = each.load(late)
            each.turns(2 * distance)
            close = each.end(each.here, "close")
            late.cancel_last()
            each.world.settle()
            assert close.ok and load.answer is not None
            del load
            gc.collect()  # an exception that no task took is reported now

    at_every_distance(run)


def test_a_load_from_another_process_that_is_cancelled_has_its_history_or_fails() -> None:
    def run(distance: int) -> None:
        with race() as each:
            load = each.load(each.there)
            each.turns(2 * distance)
            each.there.cancel_last()
            each.world.settle()
            assert load.ok or "cancelled" in json.dumps(load.answer)

    at_every_distance(run)


def test_a_load_from_another_process_that_a_delete_meets_has_its_history_or_fails() -> None:
    def run(distance: int) -> None:
        with race() as each:
            each.resume(each.there)
            each.world.loop.rest()
            each.end(each.there, "delete")
            each.turns(distance)
            load = each.load(each.there)
            each.world.settle()
            assert load.answer is not None

    at_every_distance(run)


def test_a_prompt_behind_a_second_load_from_another_process_is_answered_after_its_events() -> None:
    def run(distance: int) -> None:
        with race() as each:
            each.load(each.there)
            each.world.loop.rest()
            for agent in list(each.first.launcher.running):
                agent.exit()  # the first load waits for its return, the second for the first
            each.load(each.there)
            each.load(each.there)
            each.turns(distance)
            prompt = each.world.prompt(each.there, each.session, say=1)
            each.world.settle()
            assert prompt.answer is not None

    at_every_distance(run)


def test_a_client_of_a_killed_process_is_cut_off_also_if_the_test_runs_in_an_empty_context() -> None:
    def run(distance: int) -> None:
        with race() as each:
            each.world.prompt(each.here, each.session, say=8)
            each.turns(distance)
            each.first.kill()
            each.world.settle()
            assert each.here.gone

    at_every_distance(lambda distance: Context().run(run, distance))
