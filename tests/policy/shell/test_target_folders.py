"""`cp -t folder file` writes the file of that name in the folder."""

from __future__ import annotations

import pytest

from dragoman.config.model import PolicyRule
from dragoman.policy.decide import Policy
from dragoman.policy.load import act_of_command
from dragoman.policy.rules import make_rules


@pytest.mark.parametrize(
    "line",
    [
        "cp -t d a b/x",
        "cp -rt d b/x a",
        "cp -td b/x",
        "cp --target-directory=d b/x",
        "cp --target-directory d b/x",
        "mv -t d b/x",
        "mv --target=d b/x",
        "install -m 644 -t d b/x",
        "ln -s -t d b/x",
    ],
)
def test_the_folder_of_an_option_is_joined_with_each_name(line: str) -> None:
    act = act_of_command(line, cwd="/w", workspace="/w")
    assert ("/w/d/x", "write") in [(path.path, path.access) for path in act.all_paths]
    deny = PolicyRule(decision="deny", name="x", access="write", paths=["{workspace}/d/x"])
    rules = Policy(user=make_rules([PolicyRule(decision="allow"), deny], "user", "config.toml"))
    assert rules.decide(act).rule == "x"


def test_the_value_of_another_option_is_no_folder() -> None:
    for line in ("install -mt x y", "cp -St x y"):
        act = act_of_command(line, cwd="/w", workspace="/w")
        assert "/w/y" in [path.path for path in act.all_paths], line
