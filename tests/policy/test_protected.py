"""The audit and the key that signs it are out of agents' reach, for reading too."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.config.model import PolicyRule
from dragoman.policy.act import Act, PathFact
from dragoman.policy.decide import Policy
from dragoman.policy.load import act_of_command
from dragoman.policy.rules import make_rules


@pytest.fixture
def policy(tmp_path: Path) -> Policy:
    anything = make_rules(
        [PolicyRule(decision="allow", command=[["cat"]], outside_workspace=True)], "user", "x"
    )
    return Policy(user=anything, protected=(str(tmp_path / "state"),))


@pytest.mark.parametrize("name", ["audit/key", "audit", "audit/20261118-k3vq7mfw/000000000001.ndjson"])
def test_the_audit_is_not_read(policy: Policy, tmp_path: Path, name: str) -> None:
    path = str(tmp_path / "state" / name)
    verdict = policy.decide(Act(paths=(PathFact(path, "read", True),)))
    assert (verdict.decision, verdict.rule) == ("deny", "built in")
    assert verdict.why == f"no agent may read {path}"
    line = act_of_command(f"cat {path}", cwd=str(tmp_path), workspace=str(tmp_path))
    assert policy.decide(line).decision == "deny"


def test_other_files_of_ours_may_be_read(policy: Policy, tmp_path: Path) -> None:
    path = str(tmp_path / "state" / "audits")
    assert policy.decide(Act(paths=(PathFact(path, "read", True),))).decision == "ask"


@pytest.mark.parametrize("line", ["rm -rf .", 'rm -rf "$PWD"', "mv . ../x", "rm -r ../project", "mv clone x"])
def test_a_tree_with_a_protected_place_is_not_taken_away(tmp_path: Path, line: str) -> None:
    project = tmp_path / "project"
    for name in (".git", "src", "clone/.dragoman"):
        (project / name).mkdir(parents=True)
    rules = [PolicyRule(decision="allow", command=[["rm"], ["mv"]], outside_workspace=True)]
    policy = Policy(user=make_rules(rules, "user", "x"))

    def decided(line: str) -> str:
        return policy.decide(act_of_command(line, cwd=str(project), workspace=str(project))).decision

    assert decided(line) == "deny"
    assert decided("rm -rf src") == decided("mv src lib") == "allow"
