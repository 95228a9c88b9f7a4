"""The order of authority, and what a rule covers."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from dragoman.config.model import PolicyRule
from dragoman.policy.act import Act, PathFact, Tool
from dragoman.policy.decide import Policy, Verdict
from dragoman.policy.load import act_of_command
from dragoman.policy.rules import make_rules

NOON = datetime(2026, 11, 18, 12, tzinfo=UTC)


def rule(decision: Any, **keys: Any) -> PolicyRule:
    return PolicyRule(decision=decision, **keys)


def policy(
    *user: PolicyRule, narrow: tuple[PolicyRule, ...] = (), administrator: tuple[PolicyRule, ...] = ()
) -> Policy:
    return Policy(
        user=make_rules(user, "user", "config.toml"),
        narrow=make_rules(narrow, "narrow", "workspace"),
        administrator=make_rules(administrator, "administrator", "policy.toml"),
        protected=("/home/me/.config/dragoman", "/home/me/.local/state/dragoman"),
        now=lambda: NOON,
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    return folder


def run(rules: Policy, line: str, project: Path, **facts: Any) -> Verdict:
    return rules.decide(act_of_command(line, cwd=str(project), workspace=str(project), **facts))


GIT = rule("allow", name="git", command=[["git", ["status", "diff"]]])


def test_a_line_is_allowed_when_all_of_its_commands_are(project: Path) -> None:
    rules = policy(GIT, rule("allow", name="tests", command=[["pytest"]]))
    verdict = run(rules, "git status && pytest -q", project)
    assert (verdict.decision, verdict.why) == ("allow", "allowed by git and tests")
    assert run(rules, "git status && ls", project).decision == "ask"


def test_any_deny_wins_wherever_it_stands(project: Path) -> None:
    deny = rule("deny", name="no rm", command=[["rm"]], reason="Keep it.")
    everything = rule("allow", name="all")
    for rules in (
        policy(everything, deny),
        policy(everything, narrow=(deny,)),
        policy(everything, administrator=(deny,)),
    ):
        for line in (
            "ls; rm x",
            "/bin/rm x",
            "sudo rm x",
            "echo $(rm x)",
            "sh -c 'rm x'",
            "timeout 3 rm x",
            "ls | xargs rm",
        ):
            verdict = run(rules, line, project)
            assert (verdict.decision, verdict.rule, verdict.reason) == ("deny", "no rm", "Keep it."), line


def test_a_deny_sees_through_options_between_words(project: Path) -> None:
    rules = policy(rule("allow"), rule("deny", name="no", command=[["kubectl", "delete"], ["git", "push"]]))
    for line in (
        "kubectl -n prod delete pod x",
        "kubectl --namespace=x delete pod",
        "git -C src push",
        "git --no-pager push",
    ):
        assert run(rules, line, project).decision == "deny", line
    assert run(rules, "kubectl get delete", project).decision == "allow"


def test_a_word_that_is_not_known_may_be_the_denied_one(project: Path) -> None:
    rules = policy(rule("allow", command=[["tool"]]), rule("deny", name="no", command=[["tool", "erase"]]))
    assert run(rules, "tool show", project).decision == "allow"
    verdict = run(rules, "tool $x", project)
    assert (verdict.decision, verdict.rule) == ("ask", "no")


@pytest.mark.parametrize(
    "path",
    [
        "/home/me/.config/dragoman/config.toml",
        "/home/me/.local/state/dragoman/dragoman.db",
        "/x/.dragoman/config.toml",
        "/x/.git/config",
        "/x/.git/hooks/pre-commit",
        "/x/.GIT/Hooks/pre-commit",
    ],
)
def test_no_rule_lifts_the_built_in_denies(path: str) -> None:
    rules = policy(rule("allow", access="write", paths=["/**"]))
    assert rules.decide(Act(kind="edit", paths=(PathFact(path, "write", True),))).rule == "built in"
    assert rules.decide(Act(kind="edit", paths=(PathFact("/x/y", "write", True),))).decision == "allow"


def test_removing_a_folder_around_ours_is_denied_too() -> None:
    rules = policy(rule("allow", command=[["rm"]], outside_workspace=True))
    assert rules.decide(act_of_command("rm -rf /home/me", cwd="/", workspace="/work")).rule == "built in"


def test_approvals_are_asked_for_before_anything_remembered(project: Path) -> None:
    deploy = rule("ask", name="two", command=[["kubectl", "apply"]], approvals=2, approvers=["role:approve"])
    rules = policy(rule("allow", command=[["kubectl"]]), deploy)
    remembered = make_rules([rule("allow", command=[["kubectl"]])], "remembered", "memory")
    act = act_of_command("kubectl apply -f x.yaml", cwd=str(project), workspace=str(project))
    verdict = rules.decide(act, remembered)
    assert (verdict.decision, verdict.rule, verdict.approvals, verdict.approvers) == (
        "ask",
        "two",
        2,
        ("role:approve",),
    )
    assert verdict.facts()["approvals"] == 2


def test_a_rule_with_fewer_approvals_does_not_weaken_another(project: Path) -> None:
    two = rule("ask", name="two", command=[["kubectl", "apply"]], approvals=2)
    weak = rule("ask", name="weak", command=[["kubectl"]], approvers=["local"])
    verdict = run(policy(two, narrow=(weak,)), "kubectl apply -f x.yaml", project)
    assert [(one.rule, one.approvals) for one in verdict.wanted] == [("weak", 1), ("two", 2)]


def test_an_unknown_word_does_not_save_an_approval(project: Path) -> None:
    two = rule("ask", name="two", command=[["kubectl", "apply"]], approvals=2)
    verdict = run(policy(rule("allow", command=[["kubectl"]]), two), "kubectl $WHAT", project)
    assert (verdict.decision, [one.rule for one in verdict.wanted]) == ("ask", ["two"])


def test_narrow_rules_only_restrict(project: Path) -> None:
    allow = rule("allow", name="ls", command=[["ls"]])
    assert run(policy(administrator=(allow,)), "ls", project).decision == "ask"
    assert (
        run(policy(allow, narrow=(rule("ask", name="careful", kind=["execute"]),)), "ls", project).rule
        == "careful"
    )
    remembered = make_rules([allow], "remembered", "memory")
    act = act_of_command("ls", cwd=str(project), workspace=str(project))
    assert policy(narrow=(rule("ask", name="careful"),)).decide(act, remembered).rule == "careful"


def test_what_is_remembered_comes_before_the_users_rules(project: Path) -> None:
    remembered = make_rules([rule("allow", name="today", command=[["ls"]])], "remembered", "memory")
    act = act_of_command("ls", cwd=str(project), workspace=str(project))
    assert policy(rule("ask", name="ask", command=[["ls"]])).decide(act, remembered).rule == "today"


def test_the_first_of_the_users_rules_decides_for_each_part(project: Path) -> None:
    rules = policy(rule("ask", name="first", command=[["git", "diff"]]), rule("allow", command=[["git"]]))
    assert run(rules, "git status", project).decision == "allow"
    assert run(rules, "git status; git diff", project).rule == "first"


def test_a_command_rule_covers_paths_inside_the_workspace_only(project: Path) -> None:
    rules = policy(rule("allow", command=[["cat"]]))
    assert run(rules, "cat src/a", project).decision == "allow"
    assert run(rules, "cat /etc/passwd", project).decision == "ask"
    wide = policy(rule("allow", command=[["cat"]], paths=["{workspace}/**", "/etc/hosts"]))
    assert run(wide, "cat src/a /etc/hosts", project).decision == "allow"
    assert run(wide, "cat src/a /etc/passwd", project).decision == "ask"


def test_a_rule_for_a_program_that_prints_does_not_cover_writing(project: Path) -> None:
    assert run(policy(rule("allow", command=[["echo"]])), "echo x > src/a", project).decision == "ask"
    assert (
        run(policy(rule("allow", command=[["echo"]], access="write")), "echo x > src/a", project).decision
        == "allow"
    )
    assert run(policy(rule("allow", command=[["pytest"]])), "pytest > src/a", project).decision == "allow"


def test_an_opaque_line_is_never_allowed_by_a_command_rule_but_by_its_kind(project: Path) -> None:
    assert run(policy(rule("allow", command=[["echo"]])), "echo $(date)", project).decision == "ask"
    assert run(policy(rule("allow", kind=["execute"])), "echo $(date)", project).decision == "allow"


def test_a_line_is_an_execute_whatever_it_is_called(project: Path) -> None:
    assert run(policy(rule("allow", kind=["read"])), "rm x", project, kind="read").decision == "ask"


def test_a_label_alone_is_trusted_only_where_a_rule_says_so() -> None:
    act = Act(tool="Read", kind="read", label_only=True)
    assert policy(rule("allow", tool=["Read"])).decide(act).decision == "ask"
    assert policy(rule("allow", tool=["Read"], trust_label=True)).decide(act).decision == "allow"


def test_a_rule_on_kind_with_another_condition_trusts_no_label_by_itself() -> None:
    act = Act(kind="read", agent="claude", label_only=True)
    known = Act(kind="read", agent="claude", tool="Read", paths=(PathFact("/work/a", "read", False),))
    narrow = rule("allow", kind=["read"], agent=["claude"])
    assert policy(narrow).decide(act).decision == "ask"
    assert policy(narrow).decide(known).decision == "allow"
    trusting = rule("allow", kind=["read"], agent=["claude"], trust_label=True)
    assert policy(trusting).decide(act).decision == "allow"
    assert policy(rule("allow", kind=["read"])).decide(act).decision == "allow"  # a rule of the first version

    assert policy(rule("allow", kind=["read"])).decide(act).decision == "allow"  # as it always was


@pytest.mark.parametrize(
    ("keys", "facts", "holds"),
    [
        ({"agent": ["codex"]}, {"agent": "codex"}, True),
        ({"agent": ["codex"]}, {"agent": "claude"}, False),
        ({"mode": ["plan"]}, {"mode": "plan"}, True),
        ({"boxed": True}, {"boxed": False}, False),
        ({"watched": True}, {"watched": True}, True),
        ({"prompted_by": ["local"]}, {"prompted_by": "ci"}, False),
        ({"mcp": ["db/*"]}, {"mcp": Tool("db", "query")}, True),
        ({"mcp": ["db/query"]}, {"mcp": Tool("db", "drop")}, False),
        ({"expires": "2026-11-18"}, {}, True),
        ({"expires": "2026-11-17"}, {}, False),
        ({"expires": "2026-11-18T11:00+00:00"}, {}, False),
        ({"hosts": ["*.example.com"]}, {"hosts": ("api.example.com",)}, True),
        ({"hosts": ["*.example.com"]}, {"hosts": ("api.example.com", "evil.org")}, False),
    ],
)
def test_all_keys_of_a_rule_have_to_hold(keys: dict[str, Any], facts: dict[str, Any], holds: bool) -> None:
    verdict = policy(rule("allow", **keys)).decide(Act(kind="fetch", **facts))
    assert verdict.decision == ("allow" if holds else "ask")
    if "hosts" not in keys:
        assert (policy(rule("deny", **keys)).decide(Act(kind="fetch", **facts)).decision == "deny") == holds


def test_writes_outside_are_denied_by_the_rule_of_the_documentation(project: Path) -> None:
    rules = policy(rule("allow"), rule("deny", name="inside", access="write", outside_workspace=True))
    for line in (
        "touch /etc/x",
        "echo x > ~/.bashrc",
        "cp src/a ../b",
        "cd /tmp && touch x",
        "sed -i s/a/b/ /etc/hosts",
    ):
        assert run(rules, line, project).rule == "inside", line
    assert run(rules, "touch src/x; cat /etc/hosts", project).decision == "allow"


def test_builtins_of_the_shell_need_no_rule_but_their_redirections_do(project: Path) -> None:
    rules = policy(rule("allow", command=[["ls"]]))
    assert run(rules, "cd src && [ -d . ] && ls", project).decision == "allow"
    assert run(rules, "ls; : > src/a", project).decision == "ask"
    assert run(rules, "cd /etc && ls", project).decision == "ask"


def test_what_a_loop_is_given_needs_no_rule_of_its_own_but_is_seen(project: Path) -> None:
    echo = rule("allow", command=[["echo"]])
    line = 'while read -r l; do echo "$l"; done < src/a'
    assert run(policy(echo), line, project).decision == "allow"
    assert run(policy(echo), line.replace("src/a", "/etc/hosts"), project).decision == "ask"
    assert run(policy(echo), line.replace("<", ">"), project).decision == "ask"
    assert run(policy(echo, rule("deny", name="no", paths=["{workspace}/src/a"])), line, project).rule == "no"


def unasked(rules: Policy, line: str, project: Path) -> Verdict:
    return rules.decide_unasked(act_of_command(line, cwd=str(project), workspace=str(project)))


def test_a_command_without_a_rule_does_not_hide_an_ask_rule_of_an_unasked_act(project: Path) -> None:
    rules = policy(
        rule("allow", name="dry", command=[["kubectl", "apply", "--dry-run"]]),
        rule("ask", name="apply", command=[["kubectl", "apply"]]),
        rule("ask", name="sudo", command=[["sudo"]]),
        rule("ask", name="keys", paths=["{workspace}/keys/**"]),
    )
    for line, name in (
        ("kubectl apply -f x; ls", "apply"),
        ("ls; kubectl apply -f x", "apply"),
        ("ls; cat keys/a", "keys"),
        ("ls; while read x; do ls; done < keys/a", "keys"),
        ("ls; sudo ls", "sudo"),
    ):
        verdict = unasked(rules, line, project)
        assert (verdict.decision, verdict.rule) == ("ask", name), line
    for line in ("ls", "ls; kubectl apply --dry-run"):
        verdict = unasked(rules, line, project)
        assert (verdict.decision, verdict.rule) == ("allow", "default"), line


def test_a_path_that_is_not_known_may_be_inside_the_workspace(project: Path) -> None:
    rules = policy(
        rule("allow", name="all"),
        rule("deny", name="inside", access="write", outside_workspace=False),
    )
    assert run(rules, "touch a", project).decision == "deny"
    verdict = run(rules, 'touch "$NAME"', project)
    assert (verdict.decision, verdict.rule) == ("ask", "inside")
    assert run(rules, "touch /tmp/a", project).decision == "allow"
