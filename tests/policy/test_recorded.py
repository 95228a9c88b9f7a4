"""Acts are recorded so that other rules can be tried on them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from dragoman.config.model import PolicyConfig, PolicyRule
from dragoman.policy.act import Act, PathFact, Tool
from dragoman.policy.decide import Policy, policy_of
from dragoman.policy.load import act_of_command
from dragoman.policy.recorded import HIDDEN, act_of, recorded, secrets_of
from dragoman.policy.replay import replay

LINES = [
    "git status",
    "cd src && make test > out.txt 2>&1",
    "timeout 5 curl https://example.org/x -o /tmp/y",
    "for f in *.py; do python -m $f; done",
    "sed -i s/a/b/ notes.txt; ./git push",
    "echo $(cat secrets)",
    "cat ~/.ssh/id_rsa",
]
RULES = PolicyConfig(
    rules=[
        PolicyRule(decision="allow", command=[["git", ["status", "diff"]], ["make", "test"], ["cd"]]),
        PolicyRule(decision="deny", command=[["curl"]]),
        PolicyRule(decision="deny", access="write", outside_workspace=True),
        PolicyRule(decision="ask", paths=["~/.ssh/**"]),
    ]
)


@pytest.mark.parametrize("line", LINES)
def test_a_recorded_act_is_decided_as_the_act_itself(line: str, tmp_path: Path) -> None:
    act = act_of_command(line, cwd=str(tmp_path), workspace=str(tmp_path))
    read = act_of(json.loads(json.dumps(recorded(act))))
    assert read == act
    policy = policy_of(RULES)
    assert policy.decide(read).facts() == policy.decide(act).facts()


def test_other_acts() -> None:
    act = Act(
        agent="claude",
        session="dgm_x",
        kind="edit",
        paths=(PathFact("/etc/passwd", "write", True),),
        hosts=("example.org",),
        mcp=Tool("files", "read"),
        boxed=True,
        label_only=True,
        opaque="why",
    )
    assert act_of(json.loads(json.dumps(recorded(act)))) == act


def test_a_worktree_in_the_state_folder_stays_the_sessions_own(tmp_path: Path) -> None:
    """Also in a record without `project`, which earlier versions made."""
    state, repository = tmp_path / "state", tmp_path / "project"
    worktree = state / "worktrees" / "x" / "one"
    inside = PathFact(str(worktree / "z.txt"), "write", False)
    act = Act(workspace=str(worktree), project=str(repository), kind="edit", paths=(inside,))
    read = act_of(json.loads(json.dumps(recorded(act))))
    assert read == act
    policy = Policy(protected=(str(state),))
    now = {"id": "c:1", "decision": "ask", "act": recorded(act)}
    before = {**now, "act": {name: value for name, value in recorded(act).items() if name != "project"}}
    key = replace(act, paths=(PathFact(str(state / "audit" / "key"), "write", True),))
    elsewhere = replace(act, workspace=str(state), project="")
    past = [now, before, {**now, "act": recorded(key)}, {**now, "act": recorded(elsewhere)}]
    found = replay(policy, past).facts()
    assert [(each["now"], each["count"]) for each in found["changes"]] == [("deny", 2)]


def test_values_of_variables_are_not_recorded(tmp_path: Path) -> None:
    act = act_of_command("API_KEY=hunter2 CI=1 npm test", cwd=str(tmp_path), workspace=str(tmp_path))
    assert "hunter2" not in json.dumps(recorded(act))
    assert recorded(act)["commands"][0]["env"] == {"API_KEY": HIDDEN, "CI": HIDDEN}
    assert "hunter2" in secrets_of(act)


@pytest.mark.parametrize("facts", [{"commands": 7}, {"paths": [{"path": 1}]}, {"kind": None}])
def test_what_is_no_act_is_told(facts: dict[str, object]) -> None:
    with pytest.raises(ValueError):
        act_of(facts)


def test_rules_are_tried_on_the_past(tmp_path: Path) -> None:
    where = {"cwd": str(tmp_path), "workspace": str(tmp_path)}
    past = [
        {"id": f"c:{number}", "decision": was, "act": recorded(act_of_command(line, **where))}
        for number, (line, was) in enumerate(
            [("git status", "ask"), ("git status", "ask"), ("curl x.example", "allow"), ("git diff", "allow")]
        )
    ]
    found = replay(policy_of(RULES), [*past, {"id": "c:9", "decision": "ask"}]).facts()
    assert (found["acts"], found["unreadable"], found["changed"]) == (4, 1, 3)
    assert [(each["was"], each["now"], each["count"]) for each in found["changes"]] == [
        ("ask", "allow", 2),
        ("allow", "deny", 1),
    ]
    assert found["changes"][0]["examples"][0] == {"id": "c:0", "about": "git status"}


def test_a_call_that_is_asked_about_after_its_hook_counts_once(tmp_path: Path) -> None:
    def past(line: str, decision: str, call: str, **more: object) -> dict[str, object]:
        act = recorded(act_of_command(line, cwd=str(tmp_path), workspace=str(tmp_path)))
        return {"session": "s", "call": call, "decision": decision, "by": "default", "act": act, **more}

    records = [
        past("ls -l", "allow", "one"),
        past("git status", "allow", "two"),
        past("ls -l", "ask", "one", again=True),
        past("git status", "ask", "two", again=True),
        past("ls", "allow", "three"),
        past("curl x.example", "allow", "three"),
    ]
    found = replay(policy_of(RULES), records).facts()
    assert found["acts"] == 4
    changes = [(each["was"], each["now"], each["count"]) for each in found["changes"]]
    assert changes == [("ask", "allow", 1), ("allow", "deny", 1)]
