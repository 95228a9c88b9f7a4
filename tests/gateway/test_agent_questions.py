"""Questions of an agent about sessions that are not there any more: it is answered, and nothing is approved."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dragoman.gateway.agent import AgentConnection
from support.simulation.agent import SimulatedAgent
from support.simulation.world import World


@pytest.fixture
def world() -> Iterator[World]:
    world = World(seed=0, most_delay=0)
    yield world
    world.dispose()


def started(world: World) -> tuple[SimulatedAgent, AgentConnection]:
    """An agent with a session, and the gateway's end of its connection."""
    process = world.start_process()
    new = world.new(world.add_client(process), "shares")
    world.loop.rest()
    (agent,) = process.launcher.running
    assert new.session is not None
    connection = process.gateway.sessions[new.session].agent
    assert connection is not None
    return agent, connection


@pytest.mark.rule("G-091")
def test_a_question_of_an_unknown_session_is_cancelled(world: World) -> None:
    agent, _ = started(world)
    asked = world.loop.create_task(agent.ask("gone"), context=world.outside)
    world.loop.rest()
    assert asked.result()["result"] == {"outcome": {"outcome": "cancelled"}}


def test_a_question_that_was_held_for_a_session_that_is_not_created_is_cancelled(world: World) -> None:
    agent, connection = started(world)
    connection.expect_session()
    asked = world.loop.create_task(agent.ask("gone"), context=world.outside)
    world.loop.rest()
    assert not asked.done(), "it may be about the session that is being created"
    with world.loop.running():
        connection.session_created(None)
    world.loop.rest()
    assert asked.result()["result"] == {"outcome": {"outcome": "cancelled"}}
