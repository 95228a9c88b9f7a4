"""What was allowed in a turn stands in for a question only if it met all that is wanted."""

from __future__ import annotations

from dragoman.gateway.session.policy.allowed_calls import AllowedCalls
from dragoman.policy.decide import Wanted
from dragoman.policy.load import act_of_command

ACT = act_of_command("make all", cwd="/w", workspace="/w").facts()
TWO = Wanted("two people", 2)


def test_one_persons_answer_is_no_approval() -> None:
    allowed = AllowedCalls()
    allowed.add(ACT, "c1")
    assert not allowed.take(ACT, [TWO]) and not allowed.covers(ACT, "c1", [TWO], by_hook=False)
    assert allowed.take(ACT)


def test_what_was_approved_under_other_rules_is_asked_again() -> None:
    allowed = AllowedCalls()
    allowed.add(ACT, "c1", approved=[TWO])
    assert not allowed.take(ACT, [Wanted("two people", 3)])
    assert not allowed.take(ACT, [TWO, Wanted("named", 1, ("ann",))])
    assert allowed.take(ACT, [TWO]) and not allowed.take(ACT, [TWO])


def test_variables_and_programs_that_start_another_make_another_act() -> None:
    allowed = AllowedCalls()
    allowed.add(ACT)
    for line in ("sudo make all", "env -C /x make all", "CC=x make all"):
        assert not allowed.take(act_of_command(line, cwd="/w", workspace="/w").facts()), line
    assert not allowed.take(act_of_command("make all", cwd="/x", workspace="/w").facts())
    assert allowed.take(act_of_command("make all", cwd="/w", workspace="/w").facts())
