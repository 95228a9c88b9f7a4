"""Changes of modes, rules, settings and trust are recorded, whoever makes them."""

from __future__ import annotations

import asyncio
import json
import pkgutil
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result

from dragoman.audit import log as audit_log
from dragoman.audit.configuration import record_changes
from dragoman.audit.read import Query, query
from dragoman.cli.commands import root
from dragoman.config.audit_model import AuditConfig
from dragoman.config.model import PolicyRule
from dragoman.gateway.session import auditing
from dragoman.gateway.session.open_tools import OpenTools
from dragoman.gateway.session.policy.verdict import decide
from dragoman.policy.decide import Policy
from dragoman.policy.rules import make_rules
from support.gateway_process import GatewayProcess, Start, agent, toml
from support.rpc_peer import PATIENCE
from support.waiting import until

Found = dict[str, Any]


def recorded(home: Path, kind: str) -> list[Found]:
    return list(query(home / "audit", Query(kind=kind)))


async def opened(dragoman: Start, workspace: Path, **settings: Any) -> tuple[GatewayProcess, str]:
    gateway = await dragoman(agents={"scripted": agent("--modes")}, **settings)
    await gateway.initialize()
    return gateway, await gateway.new_session(workspace)


@pytest.mark.parametrize("option", [False, True], ids=["set_mode", "set_config_option"])
async def test_a_mode_that_a_client_sets(dragoman: Start, workspace: Path, home: Path, option: bool) -> None:
    gateway, session = await opened(dragoman, workspace)
    if option:
        params = {"sessionId": session, "configId": "mode", "value": "code"}
        await gateway.request("session/set_config_option", params)
    else:
        await gateway.request("session/set_mode", {"sessionId": session, "modeId": "code"})
    await gateway.request("session/set_mode", {"sessionId": session, "modeId": "code"})
    await gateway.stop()
    (changed,) = recorded(home, "mode_changed")
    assert (changed["session"], changed["agent"], changed["by"]) == (session, "scripted", "local")
    assert (changed["former"], changed["mode"]) == ("ask", "code")


async def test_a_mode_that_the_agent_sets_by_itself(dragoman: Start, workspace: Path, home: Path) -> None:
    gateway, session = await opened(dragoman, workspace)
    switched = json.dumps({"sessionUpdate": "current_mode_update", "currentModeId": "code"})
    await gateway.prompt(session, f"update {switched}")
    await gateway.stop()
    (changed,) = recorded(home, "mode_changed")
    assert (changed["former"], changed["mode"], changed["by"]) == ("ask", "code", "agent")


async def test_a_mode_that_a_rule_switches_back(dragoman: Start, workspace: Path, home: Path) -> None:
    rule = {"name": "no code", "decision": "deny", "kind": ["switch_mode"], "mode": ["code"]}
    gateway, session = await opened(dragoman, workspace, policy={"rules": [rule]})
    switched = json.dumps({"sessionUpdate": "current_mode_update", "currentModeId": "code"})
    await gateway.prompt(session, f"update {switched}")
    back = {"sessionUpdate": "current_mode_update", "currentModeId": "ask"}
    await gateway.next_message(lambda m: m.get("params", {}).get("update") == back)
    await gateway.stop()
    found = [(one["former"], one["mode"], one["by"]) for one in recorded(home, "mode_changed")]
    assert found == [("ask", "code", "agent"), ("code", "ask", "policy")]


async def test_rules_that_change_while_it_runs(dragoman: Start, workspace: Path, home: Path) -> None:
    gateway, session = await opened(dragoman, workspace)
    gateway.on("session/request_permission", {"outcome": {"outcome": "cancelled"}})
    await gateway.prompt(session, "permission")
    file = workspace / ".dragoman" / "config.toml"
    file.parent.mkdir()

    async def ask_until(kind: str) -> Found:
        async with asyncio.timeout(PATIENCE):  # files are looked at once a second, with a question
            while not (found := recorded(home, kind)):
                await gateway.prompt(session, "permission")
        return found[0]

    file.write_text('[[policy.rules]]\nname = "none"\ndecision = "deny"\nkind = ["execute"]\n')
    changed = await ask_until("policy_changed")
    await gateway.prompt(session, "permission")
    before, after = (one["policy"] for one in (recorded(home, "decision")[0], recorded(home, "decision")[-1]))
    assert (changed["before"], changed["after"]) == (before, after) and before != after
    assert changed["workspace"] == str(workspace) and changed["wider"] == []
    (told,) = changed["files"]
    assert told["path"] == str(file) and told["sha256"] == sha256(file.read_bytes()).hexdigest()
    file.write_text("nonsense = [")
    refused = await ask_until("policy_refused")
    assert (refused["before"], refused["after"]) == (after, None) and str(file) in refused["why"]


async def test_a_configuration_that_changed_between_two_gateways(
    dragoman: Start, workspace: Path, home: Path
) -> None:
    gateway, _ = await opened(dragoman, workspace)
    await gateway.stop()
    file = home / "config.toml"
    first = sha256(file.read_bytes()).hexdigest()
    gateway, _ = await opened(dragoman, workspace, log={"level": "warning"})
    await gateway.stop()
    (changed,) = recorded(home, "configuration_changed")
    second = sha256(file.read_bytes()).hexdigest()
    assert (changed["path"], changed["before"], changed["after"]) == (str(file), first, second)
    assert changed["by"] == "file" and changed["owner"] and changed["modified"]
    started = [one["configuration"][0]["sha256"] for one in recorded(home, "gateway_started")]
    assert started == [first, second]


def test_a_file_that_is_changed_and_removed(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    told: list[tuple[str, Found]] = []
    file.write_text("one")

    def look() -> None:
        record_changes(tmp_path / "audit", [file], lambda kind, facts: told.append((kind, facts)))

    look()
    look()
    assert told == []
    file.write_text("two")
    look()
    file.unlink()
    look()
    look()
    first, second = (sha256(text).hexdigest() for text in (b"one", b"two"))
    assert [(kind, facts["before"], facts["after"]) for kind, facts in told] == [
        ("configuration_changed", first, second),
        ("configuration_changed", second, None),
    ]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of commands that run in this process, standing in a project inside of it."""
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "home"))
    project = tmp_path / "project"
    (project / ".dragoman").mkdir(parents=True)
    (project / ".git").mkdir()
    monkeypatch.chdir(project)
    return tmp_path / "home"


def run(*arguments: str) -> Result:
    done = CliRunner().invoke(root, list(arguments))
    assert done.exit_code == 0, done.output
    return done


def test_commands_that_change_the_configuration(folder: Path) -> None:
    run("agents", "add", "mine", "--", "my-agent", "--token", "s3cr3t-value")
    run("agents", "remove", "mine")
    changes = recorded(folder, "configuration_changed")
    assert [one["by"] for one in changes] == ["local", "local"]
    assert changes[0]["before"] is None and changes[1]["before"] == changes[0]["after"]
    (added,), (removed,) = recorded(folder, "agent_added"), recorded(folder, "agent_removed")
    assert (added["agent"], removed["agent"]) == ("mine", "mine")
    assert "s3cr3t-value" not in json.dumps(added)


@pytest.mark.parametrize(
    ("kind", "effect", "words"),
    [
        ("agent_added", "dragoman.cli.agents.command.add_agent", "agents add mine --no-check -- my-agent"),
        ("agent_removed", "dragoman.cli.agents.command.remove_agent", "agents remove one"),
        ("token_made", "dragoman.server.auth.named_tokens.TokenFile.create", "tokens create phone"),
        ("token_revoked", "dragoman.server.auth.named_tokens.TokenFile.revoke", "tokens revoke tablet"),
        ("trust_given", "dragoman.cli.config.Trust.grant", "config trust"),
        ("trust_removed", "dragoman.cli.config.Trust.revoke", "config trust --remove"),
    ],
)
def test_a_command_is_recorded_once_and_before_it_does_something(
    folder: Path, kind: str, effect: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path(".dragoman/config.toml").write_text("")
    run("agents", "add", "one", "--no-check", "--", "my-agent")
    run("tokens", "create", "tablet")
    owner, _, name = effect.rpartition(".")
    place = pkgutil.resolve_name(owner.replace(".TokenFile", ":TokenFile").replace(".Trust", ":Trust"))
    real, seen, before = getattr(place, name), [], len(recorded(folder, kind))

    def look(*arguments: Any, **more: Any) -> Any:
        seen.append(len(recorded(folder, kind)) - before)
        return real(*arguments, **more)

    monkeypatch.setattr(place, name, look)
    run(*words.split())
    assert seen == [1]
    assert len(recorded(folder, kind)) - before == 1


def test_a_command_that_fails_says_so(folder: Path) -> None:
    run("tokens", "create", "tablet")
    assert CliRunner().invoke(root, ["tokens", "create", "tablet"]).exit_code != 0
    (failed,) = recorded(folder, "act_failed")
    assert (failed["act"], failed["by"]) == ("token_made", "local") and "tablet" in failed["why"]


def test_a_hand_that_was_there_before_is_told_apart_from_the_command(folder: Path) -> None:
    run("agents", "add", "mine", "--", "my-agent")
    with (folder / "config.toml").open("a") as file:
        file.write("# by hand\n")
    run("agents", "remove", "mine")
    assert [one["by"] for one in recorded(folder, "configuration_changed")] == ["local", "file", "local"]


def test_a_policy_that_is_edited(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VISUAL", "sh -c 'echo \"[log]\" >> $0'")
    run("policy", "edit")
    (changed,) = recorded(folder, "configuration_changed")
    assert changed["by"] == "local"
    assert changed["after"] == sha256((folder / "config.toml").read_bytes()).hexdigest()


def test_a_broken_configuration_can_still_be_replaced(folder: Path) -> None:
    folder.mkdir()
    (folder / "config.toml").write_text("nonsense = [")
    run("config", "init", "--force")
    assert [one["by"] for one in recorded(folder, "configuration_changed")] == ["local"]


def test_trust(folder: Path) -> None:
    file = Path(".dragoman/config.toml").absolute()
    file.write_text(toml({"default_agent": "x", "agents": {"x": {"command": ["x"]}}}))
    run("config", "trust")
    run("config", "trust", "--remove")
    (given,), (removed,) = recorded(folder, "trust_given"), recorded(folder, "trust_removed")
    assert given["path"] == removed["path"] == str(file)
    assert given["sha256"] == sha256(file.read_bytes()).hexdigest()
    assert [one["by"] for one in recorded(folder, "configuration_changed")] == ["local", "local"]


async def test_the_audit_thread_looks_again_and_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_log, "SIGN_EVERY", 0.01)
    file = tmp_path / "config.toml"
    file.write_text("one")
    made = audit_log.AuditLog(tmp_path / "audit", AuditConfig())
    made.watch([file])
    made.record("decision", {})
    await until((tmp_path / "audit" / "configuration.json").exists)
    file.write_text("two")
    await until(lambda: recorded(tmp_path, "configuration_changed"))
    made.close()


def test_a_decision_is_recorded_with_the_rules_that_made_it() -> None:
    """Others may be in force by then: a file is looked at whenever rules are asked for."""
    rule = PolicyRule(decision="deny", name="none", kind=["execute"])
    former, present = Policy(user=make_rules([rule], "user", "test")), Policy()
    verdict = decide(former, {"toolCallId": "c1", "kind": "execute", "title": "make"})
    told: list[Found] = []
    audit = SimpleNamespace(record=lambda kind, facts, secrets: told.append(facts))
    gateway = SimpleNamespace(audit=audit)
    session: Any = SimpleNamespace(id="dgm_a", agent_name="x", gateway=gateway, tools=OpenTools())
    auditing.asked(session, verdict, present, "c1")
    assert told[0]["policy"] == former.digest and told[0]["rule"]["name"] == "none"
