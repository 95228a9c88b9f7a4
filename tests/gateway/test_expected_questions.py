"""Answers to a question that is in the owner's journal, and has not reached this process yet, wait for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dragoman.gateway.session.questions import question
from support.simulation.world import World

QUESTION = "q_known"


@pytest.fixture
def world() -> Iterator[World]:
    world = World(seed=0, most_delay=0)
    yield world
    world.dispose()


def test_an_answer_that_gives_up_does_not_end_the_wait_of_another(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(question, "new_question_id", lambda: QUESTION)
    owner, follower = world.start_process(), world.start_process()
    here, there = world.add_client(owner), world.add_client(follower)
    new = world.new(here)
    world.loop.rest()
    assert new.session is not None
    world.load(there, new.session)
    world.loop.rest()
    questions = follower.gateway.sessions[new.session].questions
    first = follower.run(questions.arrives(QUESTION, 1.0))
    world.loop.pass_time(0.5)
    second = follower.run(questions.arrives(QUESTION, 1.0))
    world.loop.pass_time(0.6)
    assert first.result() is False and not second.done()
    world.prompt(here, new.session, ask=True)
    world.loop.rest()
    assert second.result() is True
