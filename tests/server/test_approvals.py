"""Questions that named or several people have to approve: who is asked, who counts, and what the agent is told."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from dragoman.server.auth.named_tokens import TokenFile
from server.conftest import Serve
from support.clients.bridge_page import Page
from support.gateway_process import Start, agent
from support.rpc_peer import Message, RpcFailure, Turn
from support.serve_process import ServeProcess, Socket

ASKED = "session/request_permission"
YES = {"outcome": {"outcome": "selected", "optionId": "yes"}}
NO = {"outcome": {"outcome": "selected", "optionId": "no"}}
RULE = {"name": "two people", "decision": "ask", "kind": ["execute"], "approvals": 2}
NAMED = {"name": "named", "decision": "ask", "kind": ["execute"], "approvers": ["ann", "role:admin"]}


@pytest.fixture
def tokens(home: Path) -> TokenFile:
    return TokenFile(home / "tokens.json")


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


class People:
    """Clients of one server, each with a token of its own, that have all loaded one session."""

    def __init__(self, serving: ServeProcess, tokens: TokenFile, workspace: Path) -> None:
        self.serving, self.tokens, self.workspace = serving, tokens, workspace
        self.secrets: dict[str, str] = {}

    async def join(self, name: str, session: str | None, role: str = "approve") -> Socket:
        if name not in self.secrets:
            self.secrets[name] = self.tokens.create(name, role)[1]
        socket = await self.serving.socket(headers=bearer(self.secrets[name]))
        await socket.initialize()
        if session is not None:
            await socket.request(
                "session/load", {"sessionId": session, "cwd": str(self.workspace), "mcpServers": []}
            )
        return socket

    async def page(self, name: str, session: str, role: str = "approve") -> Page:
        if name not in self.secrets:
            self.secrets[name] = self.tokens.create(name, role)[1]
        page = await Page.open(self.serving, headers=bearer(self.secrets[name]))
        await page.load(session)
        return page


async def asked_of(socket: Socket) -> list[Message]:
    """The questions that arrived before now."""
    await socket.request("session/list", {})
    return [each for each in socket.received if each.get("method") == ASKED]


def said(turn: Turn) -> str:
    return "".join(turn.texts)


def approval(question: Message) -> dict[str, Any]:
    found: dict[str, Any] = question["params"]["_meta"]["dragoman"]["approval"]
    return found


async def test_two_people_other_than_the_one_who_prompted_approve(
    serve: Serve, tokens: TokenFile, workspace: Path
) -> None:
    people = People(await serve(policy={"rules": [RULE]}), tokens, workspace)
    writer = await people.join("writer", None, "control")
    session = await writer.new_session(workspace)
    ann, bob, anns_other = [await people.join(name, session) for name in ("ann", "bob", "ann")]
    turn = writer.start_prompt(session, "permission")
    first = await ann.next_message(ASKED)
    await anns_other.next_message(ASKED)
    assert [option["optionId"] for option in first["params"]["options"]] == [
        "yes",
        "no",
    ]  # nothing for always
    assert approval(first)["promptedBy"] == "writer" and approval(first)["said"] == []
    assert await asked_of(writer) == []
    second = await bob.next_message(ASKED)
    ann.reply(first, YES)
    await anns_other.next_message("$/cancel_request")  # one person is one approval
    shown = (await people.serving.http().get(f"/api/sessions/{session}")).json()
    assert shown["state"] == "waiting_for_permission"
    assert [one["by"] for one in shown["question"]["approval"]["said"]] == ["ann"]
    bob.reply(second, YES)
    assert '"optionId": "yes"' in said(await turn)


async def test_one_rejection_ends_it(serve: Serve, tokens: TokenFile, workspace: Path) -> None:
    people = People(await serve(policy={"rules": [{**RULE, "approvals": 3}]}), tokens, workspace)
    writer = await people.join("writer", None, "control")
    session = await writer.new_session(workspace)
    ann, bob, carl = [await people.join(name, session) for name in ("ann", "bob", "carl")]
    turn = writer.start_prompt(session, "permission")
    ann.reply(await ann.next_message(ASKED), YES)
    bob.reply(await bob.next_message(ASKED), NO)
    await carl.next_message("$/cancel_request")
    assert '"optionId": "no"' in said(await turn)
    exported = (await people.serving.http().get(f"/api/sessions/{session}/export")).text
    assert '"identity":"bob"' in exported and '"by":"ann"' in exported


async def test_only_those_who_are_named_are_asked_and_a_role_means_that_or_a_higher_one(
    serve: Serve, tokens: TokenFile, workspace: Path
) -> None:
    people = People(await serve(policy={"rules": [NAMED]}), tokens, workspace)
    writer = await people.join("writer", None, "control")
    session = await writer.new_session(workspace)
    ann, bob = [await people.join(name, session) for name in ("ann", "bob")]
    boss = await people.join("boss", session, "admin")
    turn = writer.start_prompt(session, "permission")
    question = await ann.next_message(ASKED)
    await boss.next_message(ASKED)
    assert await asked_of(bob) == []
    ann.reply(question, YES)
    assert '"optionId": "yes"' in said(await turn)


async def test_the_answer_of_one_who_does_not_count_is_refused_with_the_reason(
    serve: Serve, tokens: TokenFile, workspace: Path
) -> None:
    people = People(await serve(policy={"rules": [NAMED]}), tokens, workspace)
    writer = await people.join("writer", None, "control")
    session = await writer.new_session(workspace)
    bob = await people.page("bob", session)
    turn = writer.start_prompt(session, "permission")
    asked = await bob.next("permission_request")
    refused = await bob.ask("permission_response", requestId=asked["requestId"], **YES)
    assert (refused["type"], refused["code"]) == ("error", "not_an_approver")
    assert "bob is not one of those who may approve" in refused["message"]
    for name, status in (("bob", 403), ("writer", 403), ("ann", 200)):
        rest = people.serving.http()
        if name not in people.secrets:
            people.secrets[name] = tokens.create(name, "approve")[1]
        rest.headers.update(bearer(people.secrets[name]))
        place = f"/api/sessions/{session}/questions/{asked['requestId']}"
        answer = await rest.post(place, json={"optionId": "yes"})
        assert answer.status_code == status, (name, answer.text)
    assert '"optionId": "yes"' in said(await turn)


async def test_approvals_are_events_of_the_page(serve: Serve, tokens: TokenFile, workspace: Path) -> None:
    people = People(await serve(policy={"rules": [RULE]}), tokens, workspace)
    writer = await people.join("writer", None, "control")
    session = await writer.new_session(workspace)
    pages = [await people.page(name, session) for name in ("ann", "bob")]
    turn = writer.start_prompt(session, "permission")
    for page in pages:
        asked = await page.next("permission_request")
        assert asked["approval"]["rules"][0] == {"rule": "two people", "approvals": 2, "approvers": []}
    for page in pages:
        answer = await page.ask("permission_response", requestId=asked["requestId"], **YES)
        assert answer["type"] == "ack", answer
    given = await pages[1].next("permission_approved")
    assert (given["requestId"], given["by"]) == (asked["requestId"], "ann")
    resolved = await pages[1].next("permission_resolved")
    assert [one["by"] for one in resolved["approvals"]] == ["ann", "bob"]
    assert (await turn).stop_reason == "end_turn"


async def test_an_approval_waits_for_people_who_come_later(
    serve: Serve, tokens: TokenFile, workspace: Path
) -> None:
    people = People(await serve(policy={"rules": [RULE]}), tokens, workspace)
    writer = await people.join("writer", None, "control")
    session = await writer.new_session(workspace)
    ann = await people.join("ann", session)
    turn = writer.start_prompt(session, "permission")
    ann.reply(await ann.next_message(ASKED), YES)
    bob = await people.join("bob", session)
    question = await bob.next_message(ASKED)
    assert [one["by"] for one in approval(question)["said"]] == ["ann"]
    bob.reply(question, YES)
    assert '"optionId": "yes"' in said(await turn)


async def test_a_cancelled_turn_ends_the_wait(serve: Serve, tokens: TokenFile, workspace: Path) -> None:
    people = People(await serve(policy={"rules": [RULE]}), tokens, workspace)
    writer = await people.join("writer", None, "control")
    session = await writer.new_session(workspace)
    ann = await people.join("ann", session)
    turn = writer.start_prompt(session, "permission")
    await ann.next_message(ASKED)
    writer.cancel(session)
    await ann.next_message("$/cancel_request")
    await turn


@pytest.mark.parametrize("approvals", [2, 3])
async def test_people_at_a_server_approve_in_a_session_of_an_editors_process(
    serve: Serve, dragoman: Start, tokens: TokenFile, workspace: Path, approvals: int
) -> None:
    rules = {"rules": [{**RULE, "approvals": approvals}]}
    people = People(await serve(policy=rules), tokens, workspace)
    editor = await dragoman("acp", "scripted", "--connect", "never", policy=rules)
    await editor.initialize()
    session = await editor.new_session(workspace)
    ann, bob = [await people.join(name, session) for name in ("ann", "bob")]
    page = await people.page("carl", session)
    turn = editor.start_prompt(session, "permission")
    first, second = await ann.next_message(ASKED), await bob.next_message(ASKED)
    assert approval(first)["promptedBy"] == "local"
    ann.reply(first, YES)
    given = await page.next("permission_approved")
    assert given["by"] == "ann"
    shown = (await people.serving.http().get(f"/api/sessions/{session}")).json()
    assert [one["by"] for one in shown["question"]["approval"]["said"]] == ["ann"]
    rest = people.serving.http()
    rest.headers.update(bearer(people.secrets["carl"]))
    place = f"/api/sessions/{session}/questions/{shown['question']['id']}"
    if approvals == 3:
        answer = await rest.post(place, json={"optionId": "yes"})
        assert answer.status_code == 200, answer.text
    bob.reply(second, YES)
    assert '"optionId": "yes"' in said(await turn)
    assert not [each for each in editor.received if each.get("method") == ASKED]


async def test_a_prompt_through_another_process_counts_as_its_sender(
    serve: Serve, dragoman: Start, tokens: TokenFile, workspace: Path
) -> None:
    rules = {"rules": [{**RULE, "approvals": 1, "approvers": ["role:approve"]}]}
    people = People(await serve(policy=rules), tokens, workspace)
    editor = await dragoman("acp", "scripted", "--connect", "never", policy=rules)
    await editor.initialize()
    session = await editor.new_session(workspace)
    ann = await people.join("ann", session, "control")
    meta = {"dragoman": {"promptedBy": "someone else"}}
    turn = ann.start_prompt(session, "permission", _meta=meta)
    question = await editor.next_message(ASKED)
    assert approval(question)["promptedBy"] == "ann"
    assert await asked_of(ann) == []
    editor.reply(question, YES)
    assert '"optionId": "yes"' in said(await turn)


async def test_no_client_may_say_who_answers(serve: Serve, tokens: TokenFile, workspace: Path) -> None:
    people = People(await serve(policy={"rules": [RULE]}), tokens, workspace)
    writer = await people.join("writer", None, "control")
    session = await writer.new_session(workspace)
    ann = await people.join("ann", session)
    turn = writer.start_prompt(session, "permission")
    await ann.next_message(ASKED)
    found = (await people.serving.http().get(f"/api/sessions/{session}")).json()["question"]
    params = {"sessionId": session, "requestId": found["id"], "result": YES}
    with pytest.raises(RpcFailure) as refused:
        await writer.request("_dragoman/answer", {**params, "answerer": {"name": "bob", "role": "admin"}})
    assert refused.value.code == -32601
    writer.cancel(session)
    await turn


async def test_a_killed_server_cancels_what_waited_for_a_second_approval(
    serve: Serve, tokens: TokenFile, workspace: Path
) -> None:
    serving = await serve(policy={"rules": [RULE]})
    people = People(serving, tokens, workspace)
    writer = await people.join("writer", None, "control")
    session = await writer.new_session(workspace)
    ann = await people.join("ann", session)
    writer.start_prompt(session, "permission").add_done_callback(lambda task: task.exception())
    ann.reply(await ann.next_message(ASKED), YES)
    page = await people.page("bob", session)
    await page.next("permission_approved")
    await serving.gateway.kill()
    people.serving = await serve(policy={"rules": [RULE]})
    page = await people.page("bob", session)
    resolved = await page.next("permission_resolved")
    assert resolved["outcome"] == {"outcome": "cancelled"}


async def test_who_wants_another_mode_does_not_approve_it(
    serve: Serve, tokens: TokenFile, workspace: Path
) -> None:
    rule = {"name": "modes", "decision": "ask", "kind": ["switch_mode"], "approvers": ["role:approve"]}
    serving = await serve(agents={"scripted": agent("--modes")}, policy={"rules": [rule]})
    people = People(serving, tokens, workspace)
    writer = await people.join("writer", None, "control")
    session = await writer.new_session(workspace)
    ann = await people.join("ann", session)
    switch = asyncio.ensure_future(
        writer.request("session/set_mode", {"sessionId": session, "modeId": "code"})
    )
    question = await ann.next_message(ASKED)
    assert approval(question)["promptedBy"] == "writer"
    assert await asked_of(writer) == []
    chosen = [o["optionId"] for o in question["params"]["options"] if o["kind"] == "allow_once"]
    ann.reply(question, {"outcome": {"outcome": "selected", "optionId": chosen[0]}})
    await switch


@pytest.mark.parametrize("method", ["session/set_mode", "session/set_config_option"])
async def test_a_mode_through_another_process_counts_as_its_senders(
    serve: Serve, dragoman: Start, tokens: TokenFile, workspace: Path, method: str
) -> None:
    rule = {"name": "modes", "decision": "ask", "kind": ["switch_mode"], "approvers": ["role:approve"]}
    set_up: Any = {"agents": {"scripted": agent("--modes")}, "policy": {"rules": [rule]}}
    people = People(await serve(**set_up), tokens, workspace)
    editor = await dragoman("acp", "scripted", "--connect", "never", **set_up)
    await editor.initialize()
    session = await editor.new_session(workspace)
    ann = await people.join("ann", session, "control")
    wish = {"modeId": "code"} if method == "session/set_mode" else {"configId": "mode", "value": "code"}
    meta = {"dragoman": {"promptedBy": "someone else"}}
    switch = asyncio.ensure_future(ann.request(method, {"sessionId": session, **wish, "_meta": meta}))
    question = await editor.next_message(ASKED)
    assert approval(question)["promptedBy"] == "ann"
    assert await asked_of(ann) == []
    chosen = [o["optionId"] for o in question["params"]["options"] if o["kind"] == "allow_once"]
    editor.reply(question, {"outcome": {"outcome": "selected", "optionId": chosen[0]}})
    await switch
