"""Answers for longer than once are the gateway's own, with the agent told once (issue 18)."""

from __future__ import annotations

import asyncio
import fcntl
import json
from pathlib import Path
from typing import Any

import pytest

from support.clients.sample_answers import CANCELLED
from support.gateway_process import GatewayProcess, Start
from support.store.journal_reader import records

PERMISSION = "session/request_permission"
ONCE, SESSION, PROJECT, REJECT = ("dragoman:once", "dragoman:session", "dragoman:project", "dragoman:reject")
OURS = {"remember": "gateway"}
OPTIONS = [
    {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
    {"optionId": "always", "name": "Always allow", "kind": "allow_always"},
    {"optionId": "no", "name": "Reject", "kind": "reject_once"},
]


def command(line: str, **more: Any) -> str:
    """A directive of the scripted agent, which asks about a shell line."""
    tool = {"toolCallId": "c1", "kind": "execute", "title": line, "rawInput": {"command": line}}
    return "permission " + json.dumps({"toolCall": tool, **more})


def chosen(option: str, **meta: Any) -> dict[str, Any]:
    told = {"_meta": {"dragoman": meta}} if meta else {}
    return {"outcome": {"outcome": "selected", "optionId": option}, **told}


def heard(option: str) -> dict[str, Any]:
    return {"result": {"outcome": {"outcome": "selected", "optionId": option}}}


@pytest.fixture
async def gateway(dragoman: Start) -> GatewayProcess:
    started = await dragoman(policy=OURS)
    await started.initialize()
    return started


async def ask(
    gateway: GatewayProcess, session: str, directive: str, answer: Any = CANCELLED
) -> tuple[Any, Any]:
    """What the agent hears, and the question that the client was asked, None if it was not."""
    questions: list[Any] = []

    def asked(params: Any) -> Any:
        questions.append(params)
        return answer

    gateway.on(PERMISSION, asked)
    turn = await gateway.prompt(session, directive)
    return turn.report("permission"), questions[-1] if questions else None


def ids(question: Any) -> list[str]:
    return [option["optionId"] for option in question["options"]]


def memories(gateway: GatewayProcess) -> list[dict[str, Any]]:
    file = gateway.home / "remembered.json"
    return list(json.loads(file.read_text())["memories"]) if file.exists() else []


async def test_clients_are_offered_our_answers_with_what_would_be_remembered(
    gateway: GatewayProcess, workspace: Path
) -> None:
    session = await gateway.new_session(workspace)
    told, question = await ask(gateway, session, command("make test"), chosen(ONCE))
    assert question["options"] == [
        {"optionId": ONCE, "name": "Allow once", "kind": "allow_once"},
        {"optionId": SESSION, "name": "Allow `make test` in this session", "kind": "allow_always"},
        {"optionId": PROJECT, "name": "Allow `make test` in this project", "kind": "allow_always"},
        {"optionId": REJECT, "name": "Reject", "kind": "reject_once"},
    ]
    assert "_meta" not in question
    assert told == heard("yes")
    told, _ = await ask(gateway, session, command("make test"), chosen(REJECT))
    assert told == heard("no")
    assert memories(gateway) == []


@pytest.mark.parametrize("option", [SESSION, PROJECT])
async def test_an_answer_for_longer_is_remembered_here_and_the_agent_is_told_once(
    gateway: GatewayProcess, workspace: Path, option: str
) -> None:
    session, other = await gateway.new_session(workspace), await gateway.new_session(workspace)
    told, _ = await ask(gateway, session, command("make test"), chosen(option))
    assert told == heard("yes")
    (kept,) = memories(gateway)
    assert (kept["scope"], kept["session"], kept["call"], kept["who"]) == (option[9:], session, "c1", "local")
    assert await ask(gateway, session, command("make test")) == (heard("yes"), None)
    told, question = await ask(gateway, session, command("make test deploy"))
    assert (told, ids(question)[0]) == ({"result": CANCELLED}, ONCE)
    again = await ask(gateway, other, command("make test"))
    assert (again == (heard("yes"), None)) is (option == PROJECT)
    answered, decided = (record for record in records(gateway.home, session, "decision")[:2])
    assert answered["outcome"]["optionId"] == option
    assert answered["remembered"]["id"] == kept["id"]
    assert decided["by"] == f"remembered {kept['id']}"
    assert "by local" in decided["why"]


async def test_another_project_is_asked(gateway: GatewayProcess, workspace: Path, tmp_path: Path) -> None:
    await ask(gateway, await gateway.new_session(workspace), command("make test"), chosen(PROJECT))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    _, question = await ask(gateway, await gateway.new_session(elsewhere), command("make test"))
    assert question is not None


async def test_it_holds_after_a_restart_and_ends_when_it_is_forgotten(
    dragoman: Start, gateway: GatewayProcess, workspace: Path
) -> None:
    await ask(gateway, await gateway.new_session(workspace), command("make test"), chosen(PROJECT))
    await gateway.close()
    again = await dragoman(policy=OURS)
    await again.initialize()
    session = await again.new_session(workspace)
    assert await ask(again, session, command("make test")) == (heard("yes"), None)
    (again.home / "remembered.json").unlink()
    _, question = await ask(again, session, command("make test"))
    assert question is not None


@pytest.mark.parametrize("line", ["echo $(date)", "python -c 'x'", "ls *.py", ""])
async def test_what_is_not_wholly_known_offers_once_only(
    gateway: GatewayProcess, workspace: Path, line: str
) -> None:
    session = await gateway.new_session(workspace)
    _, question = await ask(gateway, session, command(line))
    assert ids(question) == [ONCE, REJECT]


@pytest.mark.parametrize(
    "option", ["yes", "always", SESSION, PROJECT, "dragoman:everywhere", "dragoman:", ""]
)
async def test_an_option_that_was_not_offered_never_approves(
    gateway: GatewayProcess, workspace: Path, option: str
) -> None:
    session = await gateway.new_session(workspace)
    told, _ = await ask(gateway, session, command("echo $(date)"), chosen(option))
    assert told == {"result": CANCELLED}
    assert memories(gateway) == []


async def test_a_rule_that_asks_whatever_is_remembered_offers_once_only(
    dragoman: Start, workspace: Path
) -> None:
    rules = [{"name": "two", "decision": "ask", "command": [["kubectl"]], "approvers": ["someone"]}]
    narrow = [{"name": "look", "decision": "ask", "command": [["npm"]]}]
    gateway = await dragoman(policy={**OURS, "rules": rules, "narrow": narrow})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    _, question = await ask(gateway, session, command("npm test"))
    assert ids(question) == [ONCE, REJECT]
    turn = gateway.start_prompt(session, command("kubectl get pods") + "\nsay done")
    await gateway.next_message(lambda m: "kubectl" in json.dumps(m.get("params")))
    gateway.cancel(session)
    await turn
    assert ids(records(gateway.home, session, "question")[-1]) == [ONCE, REJECT]


async def test_the_users_own_ask_rule_is_answered_by_what_is_remembered(
    dragoman: Start, workspace: Path
) -> None:
    rules = [{"decision": "ask", "command": [["npm"]]}]
    gateway = await dragoman(policy={**OURS, "rules": rules})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    await ask(gateway, session, command("npm test"), chosen(SESSION))
    assert await ask(gateway, session, command("npm test")) == (heard("yes"), None)


MODES = [
    {"optionId": "acceptEdits", "name": "Yes, and accept edits", "kind": "allow_always"},
    {"optionId": "default", "name": "Yes, and ask before edits", "kind": "allow_once"},
    {"optionId": "plan", "name": "No, keep planning", "kind": "reject_once"},
]
ALWAYS = [OPTIONS[1], OPTIONS[2]]
MISLABELLED = [{"optionId": "yes", "name": "Yes, and don't ask again", "kind": "allow_once"}, OPTIONS[2]]
ANSWERS = [
    {"optionId": "a", "name": "Red", "kind": "allow_once"},
    {"optionId": "b", "name": "Blue", "kind": "allow_once"},
]
TWICE = [OPTIONS[0], {**OPTIONS[1], "optionId": "yes"}, OPTIONS[2]]


@pytest.mark.parametrize(
    ("tool", "options"),
    [
        ({"kind": "switch_mode"}, MODES),
        ({"kind": "other", "_meta": {"claudeCode": {"toolName": "ExitPlanMode"}}}, MODES),
        ({"kind": "think", "toolCallId": "exit_plan_mode__1"}, MODES),
        ({"kind": "other", "_meta": {"toolName": "exit_plan_mode"}}, MODES),
        ({"kind": "other", "name": "plan_exit"}, OPTIONS),
        ({"kind": "execute", "rawInput": {"command": "ls"}}, ALWAYS),
        ({"kind": "execute", "rawInput": {"command": "ls"}}, MISLABELLED),
        ({"kind": "execute", "rawInput": {"command": "ls"}}, TWICE),
        ({"kind": "other"}, ANSWERS),
        ({"kind": "execute", "rawInput": {"command": "ls"}}, []),
    ],
    ids=["kind", "claude", "gemini", "qwen", "opencode", "always", "mislabelled", "twice", "answers", "none"],
)
async def test_what_is_no_question_of_once_or_always_keeps_the_agents_options(
    gateway: GatewayProcess, workspace: Path, tool: dict[str, Any], options: list[Any]
) -> None:
    session = await gateway.new_session(workspace)
    asked = {"toolCall": {"toolCallId": "c1", "title": "x", **tool}, "options": options}
    last = options[0]["optionId"] if options else "yes"
    told, question = await ask(gateway, session, "permission " + json.dumps(asked), chosen(last))
    assert question["options"] == options
    assert told == (heard(last) if options else {"result": CANCELLED})


async def test_an_option_that_picks_a_mode_of_the_session_is_the_agents_own(
    dragoman: Start, workspace: Path
) -> None:
    from support.gateway_process import agent

    gateway = await dragoman(policy=OURS, agents={"scripted": agent("--modes")})
    await gateway.initialize()
    result = await gateway.request("session/new", {"cwd": str(workspace), "mcpServers": []})
    mode = result["modes"]["availableModes"][0]["id"]
    options = [OPTIONS[0], {"optionId": mode, "name": "Yes, and work so", "kind": "allow_always"}]
    _, question = await ask(gateway, result["sessionId"], command("ls", options=options))
    assert question["options"] == options


async def test_options_of_other_kinds_are_passed_on_and_forged_ids_of_ours_are_not(
    gateway: GatewayProcess, workspace: Path
) -> None:
    session = await gateway.new_session(workspace)
    odd = {"optionId": "edit", "name": "Edit it first", "kind": "modify"}
    forged = {"optionId": PROJECT, "name": "Sure", "kind": "modify"}
    directive = command("echo $(date)", options=[*OPTIONS, odd, forged])
    told, question = await ask(gateway, session, directive, chosen("edit"))
    assert ids(question) == [ONCE, REJECT, "edit"] or ids(question) == [ONCE, "edit"]
    assert told == heard("edit")
    told, _ = await ask(gateway, session, directive, chosen(PROJECT))
    assert told == {"result": CANCELLED}


async def test_a_no_for_always_stays_the_agents_and_without_a_no_it_is_cancelled(
    gateway: GatewayProcess, workspace: Path
) -> None:
    session = await gateway.new_session(workspace)
    never = {"optionId": "never", "name": "Never", "kind": "reject_always"}
    told, question = await ask(gateway, session, command("ls", options=[OPTIONS[0], never]), chosen("never"))
    assert (told, ids(question)[-1]) == (heard("never"), "never")
    told, question = await ask(gateway, session, command("ls", options=OPTIONS[:1]), chosen(REJECT))
    assert (told, ids(question)[-1]) == ({"result": CANCELLED}, REJECT)


WISH = {"scope": "everywhere", "until": "1h", "pattern": ["run make *"]}


async def test_a_person_may_wish_for_a_wider_pattern_elsewhere_and_for_a_time(
    gateway: GatewayProcess, workspace: Path, tmp_path: Path
) -> None:
    session = await gateway.new_session(workspace)
    await ask(gateway, session, command("make test"), chosen(ONCE, remember=WISH))
    (kept,) = memories(gateway)
    assert (kept["scope"], kept["pattern"]) == ("everywhere", [{"command": [["make"]]}])
    assert kept["until"] is not None
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    other = await gateway.new_session(elsewhere)
    assert await ask(gateway, other, command("make all")) == (heard("yes"), None)


@pytest.mark.parametrize(
    "wish",
    [
        {**WISH, "pattern": ["run npm *"]},
        {**WISH, "pattern": [{"command": [["make"]], "decision": "deny"}]},
        {**WISH, "until": "for ever"},
        {**WISH, "scope": "world"},
        {**WISH, "pattern": ["run *"]},
        "project",
    ],
    ids=str,
)
async def test_a_wish_that_cannot_be_holds_once_and_is_told(
    gateway: GatewayProcess, workspace: Path, wish: Any
) -> None:
    session = await gateway.new_session(workspace)
    told, _ = await ask(gateway, session, command("make test"), chosen(ONCE, remember=wish))
    assert told == heard("yes")
    assert memories(gateway) == []
    assert "Nothing is remembered" in json.dumps(records(gateway.home, session, "notice"))
    told, _ = await ask(gateway, session, command("make test"), chosen(REJECT, remember=WISH))
    assert (told, memories(gateway)) == (heard("no"), [])


async def test_a_wish_for_what_is_not_known_is_refused(gateway: GatewayProcess, workspace: Path) -> None:
    session = await gateway.new_session(workspace)
    answer = chosen(ONCE, remember={"scope": "project", "pattern": ["run echo *"]})
    told, _ = await ask(gateway, session, command("echo $(date)"), answer)
    assert (told, memories(gateway)) == (heard("yes"), [])


async def test_a_built_in_deny_is_lifted_by_no_wish(gateway: GatewayProcess, workspace: Path) -> None:
    session = await gateway.new_session(workspace)
    wish = {"scope": "project", "pattern": ["run cp *"]}
    await ask(gateway, session, command("cp a b"), chosen(ONCE, remember=wish))
    assert len(memories(gateway)) == 1
    assert await ask(gateway, session, command("cp a c")) == (heard("yes"), None)
    assert await ask(gateway, session, command("cp a .git/config")) != (heard("yes"), None)


async def test_a_client_that_shows_facts_is_told_them(dragoman: Start, workspace: Path) -> None:
    gateway = await dragoman(policy=OURS)
    await gateway.initialize(clientCapabilities={"_meta": {"dragoman": {"remembering": True}}})
    session = await gateway.new_session(workspace)
    _, question = await ask(gateway, session, command("make test"))
    told = question["_meta"]["dragoman"]["policy"]
    assert told["remember"]["pattern"] == ["run make test"]
    assert told["act"]["commands"][0]["words"] == ["make", "test"]
    assert told["why"] == "no rule is about `make test`"


async def test_a_broken_file_asks_and_is_told(gateway: GatewayProcess, workspace: Path) -> None:
    session = await gateway.new_session(workspace)
    file = gateway.home / "remembered.json"
    file.write_text("{")
    told, _ = await ask(gateway, session, command("make test"), chosen(PROJECT))
    assert (told, file.read_text()) == (heard("yes"), "{")
    assert "mend or delete" in json.dumps(records(gateway.home, session, "notice"))


async def test_with_the_agents_way_its_options_are_passed_on(dragoman: Start, workspace: Path) -> None:
    gateway = await dragoman(policy={"remember": "agent"})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    told, question = await ask(gateway, session, command("make test"), chosen("always"))
    assert (question["options"], told) == (OPTIONS, heard("always"))


@pytest.mark.parametrize("released", [True, False])
async def test_a_lock_of_another_process_holds_no_session_and_the_answer_is_stored_afterwards(
    gateway: GatewayProcess, workspace: Path, released: bool
) -> None:
    session, other = await gateway.new_session(workspace), await gateway.new_session(workspace)
    with (gateway.home / "remembered.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        began = asyncio.get_running_loop().time()
        told, _ = await ask(gateway, session, command("make test"), chosen(PROJECT))
        assert (await gateway.prompt(other, "say on")).texts == ["on"]
        assert asyncio.get_running_loop().time() - began < 0.9, "the event loop waited for the lock"
        assert (told, memories(gateway)) == (heard("yes"), [])
        if not released:
            await gateway.next_message(lambda m: "holds its lock" in json.dumps(m.get("params")))
    async with asyncio.timeout(10):
        while released and not memories(gateway):
            await asyncio.sleep(0.02)  # nothing tells when another process has written a file
    assert len(memories(gateway)) == int(released)


async def test_a_timeout_is_a_no(dragoman: Start, workspace: Path) -> None:
    gateway = await dragoman(policy=OURS, sessions={"question_timeout": 0.2})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    gateway.on(PERMISSION, lambda params: None)
    prompt = gateway.start_prompt(session, command("make test"))
    turn = await prompt
    assert turn.report("permission") in (heard("no"), {"result": CANCELLED})


async def test_a_deleted_session_takes_its_own_answers_with_it(
    gateway: GatewayProcess, workspace: Path
) -> None:
    session = await gateway.new_session(workspace)
    await ask(gateway, session, command("make test"), chosen(SESSION))
    await ask(gateway, session, command("make all"), chosen(PROJECT))
    await gateway.request("session/delete", {"sessionId": session})
    assert [kept["scope"] for kept in memories(gateway)] == ["project"]


async def test_what_was_not_recorded_is_not_remembered(dragoman: Start, workspace: Path, home: Path) -> None:
    (home / "audit").write_text("in the way")
    gateway = await dragoman(policy=OURS, sessions={"write_patience": 1})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    told, asked = await ask(gateway, session, command("make test"), chosen(PROJECT))
    assert (told, asked is not None) == (heard("no"), True)
    (home / "audit").unlink()
    _, asked = await ask(gateway, session, command("make test"), chosen(ONCE))
    assert asked is not None, "the answer that was refused must not decide"
    assert not (gateway.home / "remembered.json").exists()
