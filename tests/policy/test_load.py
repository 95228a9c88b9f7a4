"""The administrator's file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dragoman.config.errors import ConfigError
from dragoman.config.model import PolicyConfig
from dragoman.config.paths import Paths
from dragoman.policy.load import act_of_command, administrator_rules, policy_that_asks

RULES = '[[policy.rules]]\nname = "no rm"\ndecision = "deny"\ncommand = [["rm"]]\n'
as_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can make a file that belongs to root")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    folder = tmp_path / "etc"
    folder.mkdir(mode=0o755)
    made = folder / "policy.toml"
    made.write_text(RULES)
    made.chmod(0o644)
    return made


def test_without_a_file_there_are_no_rules(tmp_path: Path) -> None:
    assert administrator_rules(tmp_path / "policy.toml") == ([], [])


@as_root
def test_a_file_that_only_root_may_write_is_in_force(file: Path) -> None:
    rules, warnings = administrator_rules(file)
    assert ([rule.name for rule in rules], warnings) == (["no rm"], [])


@as_root
@pytest.mark.parametrize("part", ["file", "folder"])
def test_a_file_that_others_may_write_is_ignored_with_a_warning(file: Path, part: str) -> None:
    (file if part == "file" else file.parent).chmod(0o777)
    rules, warnings = administrator_rules(file)
    assert not rules
    assert "may write" in warnings[0]
    assert "chmod 644" in warnings[0]


@as_root
def test_a_file_of_another_user_is_ignored(file: Path) -> None:
    os.chown(file, 12345, 12345)
    rules, warnings = administrator_rules(file)
    assert not rules
    assert "does not belong to root" in warnings[0]


@as_root
def test_a_broken_file_is_an_error_that_names_it(file: Path) -> None:
    file.write_text('[[policy.rules]]\ndecision = "perhaps"\n')
    with pytest.raises(ConfigError, match=r"policy\.toml"):
        administrator_rules(file)


@as_root
def test_a_workspace_with_a_broken_file_does_not_lift_what_the_administrator_denies(file: Path) -> None:
    paths = Paths(*(file.parent / name for name in ("config.toml", "state", "run", "cache")))
    policy = policy_that_asks(PolicyConfig(), paths, file)
    for line, decision in (("rm x", "deny"), ("ls", "ask")):
        act = act_of_command(line, cwd=str(file.parent), workspace=str(file.parent))
        assert policy.decide(act).decision == decision
