"""The rules that are looked at for an act are all that can decide about it."""

from __future__ import annotations

import gc
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman.config.model import PolicyRule
from dragoman.policy.decide import Policy
from dragoman.policy.index import RuleIndex
from dragoman.policy.load import act_of_command
from dragoman.policy.requests.request import Surroundings
from dragoman.policy.requests.service import act_of_service
from dragoman.policy.rules import make_rules

GLOBS = st.sampled_from(
    [
        *(
            "{workspace}/**",
            "{workspace}/a/**",
            "{workspace}/a/*",
            "{workspace}/**/k",
            "{workspace}/a/k",
            "/**",
        ),
        *(
            "{workspace}/*/k",
            "{workspace}/a*/**",
            "/*/x",
            "**/k",
            "~/.ssh/**",
            "/etc/**",
            "{workspace}",
            "/",
            "**",
        ),
    ]
)
RULES = st.builds(
    PolicyRule,
    decision=st.sampled_from(["allow", "deny", "ask"]),
    paths=st.lists(GLOBS, max_size=2),
    access=st.sampled_from([None, "read", "write"]),
    command=st.sampled_from([[], [], [["cat"]], [["grep"]], [["cp"]]]),
    outside_workspace=st.sampled_from([None, None, True, False]),
    approvals=st.sampled_from([1, 1, 1, 2]),
)
LINES = [
    *(
        "cat a/k",
        "cat *",
        "grep -r x",
        "grep -r x a",
        "cp -r a b",
        "cat $X",
        "cat /etc/passwd",
        "rm -r a",
        "cat */k",
    ),
    *(
        "find . -name k",
        "bash -c 'cat a/k'",
        "cat ~/.ssh/id",
        "cat ab/../a/k",
        "ls; cat k > a/k",
        "cat /proc/self/x",
    ),
]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    for name in ("a/k", "ab/k", "k", "a/deep/k"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return folder


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rules=st.lists(RULES, max_size=6), path=st.sampled_from(["a/k", "k", "a", "", "/etc/x", "ab/k", 5]))
def test_the_verdict_is_the_one_of_all_rules(
    project: Path, rules: list[PolicyRule], path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = Policy(user=make_rules(rules, "user", "config.toml"))
    place = str(project)
    told = f"{place}/{path}" if isinstance(path, str) and not path.startswith("/") else path
    around = Surroundings(cwd=place, workspace=place)
    acts = [act_of_service(f"fs/{verb}_text_file", {"path": told}, around) for verb in ("read", "write")]
    acts += [act_of_command(line, cwd=place, workspace=place) for line in LINES]
    found = [policy.decide(act) for act in acts]
    with monkeypatch.context() as patch:
        patch.setattr(RuleIndex, "about", lambda self, act, part=None: self._rules)
        for act, verdict in zip(acts, found, strict=True):
            whole = policy.decide(act)
            assert (verdict.decision, verdict.rule, verdict.level) == (
                whole.decision,
                whole.rule,
                whole.level,
            ), act


def test_a_file_is_decided_quickly_with_many_rules_on_paths(project: Path) -> None:
    rules = [
        PolicyRule(decision="deny", name=f"no {number}", paths=[f"{{workspace}}/**/secret{number}/**"])
        for number in range(100)
    ]
    rules += [
        PolicyRule(decision="allow", name=f"area {number}", paths=[f"{{workspace}}/area{number}/**"])
        for number in range(99)
    ]
    rules.append(PolicyRule(decision="allow", name="a", paths=["{workspace}/a/**"]))
    policy = Policy(user=make_rules(rules, "user", "config.toml"))
    around = Surroundings(cwd=str(project), workspace=str(project))

    def decide() -> str:
        act = act_of_service("fs/read_text_file", {"path": f"{project}/a/k"}, around)
        return policy.decide_unasked(act).rule

    assert decide() == "a"
    gc.collect()
    taken = []
    for _ in range(300):
        start = time.thread_time()
        decide()
        taken.append(time.thread_time() - start)
    assert sorted(taken)[len(taken) // 10] < 0.0003, "a tenth of them; the others may be disturbed"


def test_a_link_that_is_changed_is_followed_to_its_new_place(project: Path, tmp_path: Path) -> None:
    policy = Policy(
        user=make_rules(
            [
                PolicyRule(decision="deny", name="secret", paths=["{workspace}/secret/**"]),
                PolicyRule(decision="allow", name="rest", paths=["{workspace}/**"]),
            ],
            "user",
            "config.toml",
        )
    )
    for name in ("open", "secret"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x").touch()
    link, around = tmp_path / "link", Surroundings(cwd=str(tmp_path), workspace=str(tmp_path))

    def decided() -> str:
        act = act_of_service("fs/read_text_file", {"path": str(link / "x")}, around)
        return policy.decide_unasked(act).rule

    for _ in range(3):
        link.symlink_to("open")
        assert decided() == "rest"
        link.unlink()
        link.symlink_to("secret")
        assert decided() == "secret"
        link.unlink()
