"""Whole sessions, driven at random: every order of commands, messages, threads and ends must keep the rules.

Several processes share one store in one simulated event loop (`support.simulation`): real gateways and stores, scripted
agents and clients. Commands are sent without waiting for the former ones; hypothesis picks how many turns of the loop
pass between them. The same example always runs the same way. `support.simulation.checks` has the rules.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from support.simulation.checks import check_all, surely_attached
from support.simulation.client import KINDS, SimulatedClient
from support.simulation.world import World

MOST_PROCESSES, MOST_CLIENTS, MOST_SESSIONS = 4, 8, 3

which = st.integers(0, 7)
turns = st.integers(0, 40)
scripts = st.sampled_from(
    [
        {"say": 1},
        {"say": 3},
        {"say": 1, "ask": True, "say_more": 1},
        {"say": 2, "stay": True, "say_more": 1},
        {"stay": True, "deaf": True},
    ]
)


class SessionMachine(RuleBasedStateMachine):
    world: World

    @initialize(
        seed=st.integers(0, 1000),
        most_delay=st.sampled_from([0, 2, 6]),
        durable=st.booleans(),
        agent=st.sampled_from(["loads", "resumes", "forgets"]),
        kind=st.sampled_from(sorted(KINDS)),
    )
    def begin(self, seed: int, most_delay: int, durable: bool, agent: str, kind: str) -> None:
        """Two processes, each with a client, and a session of the first."""
        self.world = World(seed, most_delay)
        first = self.world.start_process()
        second = self.world.start_process(durable=durable)
        client = self.world.add_client(first, kind)
        self.world.add_client(second, "network")
        new = self.world.new(client, agent)
        self.world.loop.rest()
        assert new.session is not None
        self.world.prompt(client, new.session, say=2)
        self.world.loop.rest()

    def client(self, number: int) -> SimulatedClient | None:
        present = self.world.present
        return present[number % len(present)] if present else None

    def session(self, number: int) -> str:
        return self.world.sessions[number % len(self.world.sessions)]

    # -- clients

    @precondition(lambda self: len(self.world.clients) < MOST_CLIENTS and self.world.running)
    @rule(where=which, kind=st.sampled_from(sorted(KINDS)), numbers=st.booleans(), wait=turns)
    def client_comes(self, where: int, kind: str, numbers: bool, wait: int) -> None:
        running = self.world.running
        self.world.add_client(running[where % len(running)], kind, numbers=numbers)
        self.world.loop.turns(wait)

    @rule(who=which, wait=turns)
    def client_leaves(self, who: int, wait: int) -> None:
        client = self.client(who)
        if client is not None:
            client.leave()
        self.world.loop.turns(wait)

    @precondition(lambda self: len(self.world.sessions) < MOST_SESSIONS)
    @rule(who=which, agent=st.sampled_from(["loads", "resumes", "forgets"]), wait=turns)
    def new(self, who: int, agent: str, wait: int) -> None:
        client = self.client(who)
        if client is not None:
            self.world.new(client, agent)
        self.world.loop.turns(wait)

    @rule(who=which, what=which, wait=turns)
    def load(self, who: int, what: int, wait: int) -> None:
        client = self.client(who)
        if client is not None:
            self.world.load(client, self.session(what))
        self.world.loop.turns(wait)

    @rule(who=which, what=which, goes_on=st.booleans(), wait=turns)
    def resume(self, who: int, what: int, goes_on: bool, wait: int) -> None:
        client = self.client(who)
        if client is not None:
            session = self.session(what)
            self.world.resume(client, session, client.last_seq(session) if goes_on else None)
        self.world.loop.turns(wait)

    @rule(who=which, what=which, script=scripts, wait=turns)
    def prompt(self, who: int, what: int, script: dict[str, Any], wait: int) -> None:
        client = self.client(who)
        if client is not None:
            self.world.prompt(client, self.session(what), **script)
        self.world.loop.turns(wait)

    @rule(who=which, what=which, wait=turns)
    def cancel(self, who: int, what: int, wait: int) -> None:
        client = self.client(who)
        if client is not None:
            client.notify("session/cancel", {"sessionId": self.session(what)})
        self.world.loop.turns(wait)

    @rule(who=which, wait=turns)
    def cancel_request(self, who: int, wait: int) -> None:
        client = self.client(who)
        if client is not None:
            client.cancel_last()
        self.world.loop.turns(wait)

    @rule(who=which, option=st.sampled_from(["yes", "no", "perhaps"]), wait=turns)
    def answer(self, who: int, option: str, wait: int) -> None:
        client = self.client(who)
        if client is not None:
            client.answer(option)
        self.world.loop.turns(wait)

    @rule(who=which, what=which, wait=turns)
    def close(self, who: int, what: int, wait: int) -> None:
        client = self.client(who)
        if client is not None:
            client.call("session/close", {}, self.session(what))
        self.world.loop.turns(wait)

    @rule(who=which, what=which, wait=turns)
    def delete(self, who: int, what: int, wait: int) -> None:
        client = self.client(who)
        if client is not None:
            client.call("session/delete", {}, self.session(what))
        self.world.loop.turns(wait)

    # -- agents, processes, time

    @rule(which=which, wait=turns)
    def agent_crashes(self, which: int, wait: int) -> None:
        agents = [agent for process in self.world.processes for agent in process.launcher.running]
        if agents:
            sorted(agents, key=lambda agent: agent.number)[which % len(agents)].exit()
        self.world.loop.turns(wait)

    @precondition(lambda self: len(self.world.processes) < MOST_PROCESSES)
    @rule(which=which, how=st.sampled_from(["kill", "shut down"]), wait=turns)
    def process_ends(self, which: int, how: str, wait: int) -> None:
        """Another one takes its place."""
        running = self.world.running
        process = running[which % len(running)]
        if how == "kill":
            process.kill()
        else:
            process.shut_down()
        self.world.loop.turns(wait)
        self.world.start_process(durable=process.durable)

    @rule(seconds=st.sampled_from([0.2, 1.0, 6.0, 50.0]))
    def time_passes(self, seconds: float) -> None:
        self.world.loop.pass_time(seconds)

    # -- the end

    def teardown(self) -> None:
        world = getattr(self, "world", None)
        if world is None:
            return
        try:
            world.settle()
            self._probe()
            check_all(world)
            world.close()
            world.check()
        finally:
            world.dispose()

    def _probe(self) -> None:
        """One more turn in each session: whoever came to it last, and was not sent away, sees it."""
        world = self.world
        for session in dict.fromkeys(world.sessions):
            attached = surely_attached(world, session)
            for client in attached[:1]:
                prompt = world.prompt(client, session, say=1)
                world.loop.pass_time(60.0)
                world.expect(prompt.ok, f"{client} is attached, but {prompt}")
            for client in attached:
                story = list(world.story(session))
                seen = client.texts(session)
                world.expect(not story or story[-1] in seen, f"{client} did not see {story[-1:]}: {seen}")


class RewindingMachine(SessionMachine):
    """The same with rewinds, from any client at any time."""

    @rule(
        who=which,
        what=which,
        wish=st.sampled_from([{"retry": True}, {"undo": True}, {"to": 1}, {"to": 2}]),
        wait=turns,
    )
    def rewind(self, who: int, what: int, wish: dict[str, object], wait: int) -> None:
        client = self.client(who)
        if client is not None:
            self.world.rewind(client, self.session(what), wish)
        self.world.loop.turns(wait)

    def _probe(self) -> None:
        """A client that comes last is shown what is not undone, and the session goes on."""
        super()._probe()
        world = self.world
        for session in [each for each in dict.fromkeys(world.sessions) if each in world.rewound]:
            client = world.add_client(world.running[0])
            loaded = world.load(client, session)
            world.loop.pass_time(60.0)
            if not loaded.ok:
                continue  # deleted
            world.read_journals()
            shown = world.shown(session)
            seen = [text for text in client.texts(session) if text in world.story(session)]
            world.expect(seen == shown, f"{client} was shown {seen} of {session}, not {shown}")
            while client.questions:  # of a turn whose page left before it answered
                client.answer("yes")
            world.loop.pass_time(60.0)
            prompt = world.prompt(client, session, say=1)
            world.loop.pass_time(60.0)
            world.expect(prompt.ok, f"a rewound session does not go on: {prompt}")


def _settings(**changes: Any) -> settings:
    return settings(deadline=None, suppress_health_check=list(HealthCheck), **changes)


@pytest.mark.timeout(300)  # a quarter of a minute alone
def test_sessions_keep_their_rules_in_any_order_of_events() -> None:
    run_state_machine_as_test(
        SessionMachine,
        settings=_settings(derandomize=True, max_examples=70, stateful_step_count=30, database=None),
    )


@pytest.mark.timeout(300)
def test_sessions_are_rewound_in_any_order_of_events() -> None:
    run_state_machine_as_test(
        RewindingMachine,
        settings=_settings(derandomize=True, max_examples=20, stateful_step_count=30, database=None),
    )


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_sessions_are_rewound_in_many_orders_of_events() -> None:
    run_state_machine_as_test(RewindingMachine, settings=_settings(max_examples=1000, stateful_step_count=50))


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_sessions_keep_their_rules_in_many_orders_of_events() -> None:
    run_state_machine_as_test(SessionMachine, settings=_settings(max_examples=2000, stateful_step_count=50))
