"""Questions: seen by everybody, answered once, there again after a reload."""

from __future__ import annotations

from pathlib import Path

from server.conftest import Serve
from support.clients.bridge_page import Page
from support.gateway_process import agent
from support.rpc_peer import is_request
from support.serve_process import ServeProcess

YES = {"outcome": "selected", "optionId": "yes"}
NO = {"outcome": "selected", "optionId": "no"}


async def test_the_first_of_two_answers_counts(page: Page, serving: ServeProcess, workspace: Path) -> None:
    session = await page.new_session(workspace)
    other = await Page.open(serving)
    await other.load(session)
    page.send("send_message", sessionId=session, content="permission")
    asked = await other.next("permission_request")
    assert (await page.next("permission_request"))["requestId"] == asked["requestId"]
    assert [option["optionId"] for option in asked["options"]] == ["yes", "always", "no"]
    assert (await other.ask("permission_response", requestId=asked["requestId"], outcome=YES))[
        "type"
    ] == "ack"
    late = await page.ask("permission_response", requestId=asked["requestId"], outcome=NO)
    assert (late["type"], late["code"]) == ("error", "already_answered")
    for tab in (page, other):
        resolved = await tab.next("permission_resolved")
        assert (resolved["requestId"], resolved["outcome"], resolved["by"]) == (
            asked["requestId"],
            YES,
            "user",
        )
    await page.next("turn_complete")
    assert '"optionId": "yes"' in page.text(session)


async def test_a_question_is_there_again_after_a_reload(
    page: Page, serving: ServeProcess, workspace: Path
) -> None:
    session = await page.new_session(workspace)
    page.send("send_message", sessionId=session, content="permission")
    asked = await page.next("permission_request")
    await page.close()
    again = await Page.open(serving)
    loaded = await again.load(session)
    assert (loaded["session"]["state"], loaded["session"]["questions"]) == ("waiting_for_permission", 1)
    assert (await again.next("permission_request"))["requestId"] == asked["requestId"]
    again.send("permission_response", requestId=asked["requestId"], outcome=YES)
    await again.next("turn_complete")


async def test_an_editor_and_a_page_answer_the_same_question(
    page: Page, serving: ServeProcess, workspace: Path
) -> None:
    session = await page.new_session(workspace)
    editor = await serving.socket()
    await editor.initialize(clientInfo={"name": "zed", "version": "1"})
    await editor.request("session/load", {"sessionId": session, "cwd": str(workspace), "mcpServers": []})
    page.send("send_message", sessionId=session, content="permission")
    question = await editor.next_message("session/request_permission")
    editor.reply(question, {"outcome": YES})
    resolved = await page.next("permission_resolved")
    assert (resolved["by"], resolved["client"]) == ("user", "zed")


async def test_a_form_is_filled_in_and_what_was_typed_is_not_kept(
    page: Page, serving: ServeProcess, workspace: Path
) -> None:
    session = await page.new_session(workspace)
    page.send("send_message", sessionId=session, content="elicit")
    asked = await page.next("elicitation_request")
    assert (asked["mode"], asked["message"]) == ("form", "Your name?")
    assert asked["requestedSchema"]["required"] == ["name"]
    page.send(
        "elicitation_response", requestId=asked["requestId"], action="accept", content={"name": "s3cret"}
    )
    resolved = await page.next("elicitation_resolved")
    assert (resolved["requestId"], resolved["action"]) == (asked["requestId"], "accept")
    await page.next("turn_complete")
    assert '"name": "s3cret"' in page.text(session)  # the agent got it and says so
    assert "s3cret" not in str([e for e in page.numbered(session) if e["type"] != "message_chunk"])


async def test_a_form_about_a_prompt_is_a_question_of_its_session(page: Page, workspace: Path) -> None:
    session = await page.new_session(workspace)
    page.send("send_message", sessionId=session, content="elicit-for-prompt")
    asked = await page.next("elicitation_request", sessionId=session)
    page.send("elicitation_response", requestId=asked["requestId"], action="decline")
    assert (await page.next("elicitation_resolved"))["action"] == "decline"
    await page.next("turn_complete")
    assert '"action": "decline"' in page.text(session)


async def test_a_decision_of_the_policy_is_told_with_its_rule(serve: Serve, workspace: Path) -> None:
    rules = [{"decision": "allow", "kind": ["execute"], "name": "let it run"}]
    page = await Page.open(await serve(policy={"rules": rules}))
    session = await page.new_session(workspace)
    await page.turn(session, "permission")
    (resolved,) = [e for e in page.numbered(session) if e["type"] == "permission_resolved"]
    assert (resolved["requestId"], resolved["by"], resolved["toolCallId"]) == (None, "let it run", "call-1")
    assert resolved["outcome"]["optionId"] == "yes"
    assert "permission_request" not in page.types(session)


async def test_a_question_of_an_agent_that_died_is_resolved(serve: Serve, workspace: Path) -> None:
    page = await Page.open(await serve(agents={"scripted": agent()}))
    session = await page.new_session(workspace)
    go = workspace / "go"
    page.send("send_message", sessionId=session, content=f"permission-nowait\nwait-file {go}\ncrash")
    asked = await page.next("permission_request")
    go.touch()
    resolved = await page.next("permission_resolved")
    assert (resolved["requestId"], resolved["by"]) == (asked["requestId"], "agent_exited")
    exited = await page.next("agent_exited")
    assert exited["expected"] is False
    ended = await page.next("turn_complete")
    assert ended["error"]["code"] == "agent_exited"
    assert ended["error"]["hint"]


async def test_a_client_names_its_own_rule_but_not_one_of_the_gateways(serve: Serve, workspace: Path) -> None:
    serving = await serve(policy={"rules": [{"name": "no-rm", "decision": "deny", "kind": ["delete"]}]})
    page = await Page.open(serving)
    session = await page.new_session(workspace)
    editor = await serving.socket()
    await editor.initialize()
    await editor.request("session/load", {"sessionId": session, "cwd": str(workspace), "mcpServers": []})
    rows = {
        "--approve all": "--approve all",
        "timeout": "user",
        "no-rm": "user",
        "user": "user",
        "default": "user",
    }
    for claimed, recorded in rows.items():
        page.send("send_message", sessionId=session, content="ask")
        question = await editor.next_message(is_request("session/request_permission"))
        editor.reply(question, {"outcome": YES, "_meta": {"dragoman": {"rule": claimed}}})
        assert (await page.next("permission_resolved"))["by"] == recorded
        await page.next("turn_complete")


async def test_an_id_of_a_message_that_is_none_is_not_shown(
    page: Page, serving: ServeProcess, workspace: Path
) -> None:
    session = await page.new_session(workspace)
    editor = await serving.socket()
    await editor.initialize()
    await editor.request("session/load", {"sessionId": session, "cwd": str(workspace), "mcpServers": []})
    for odd in ({"a": 1}, 5, "x" * 5000):
        await editor.prompt(session, "say hi", _meta={"dragoman": {"clientMessageId": odd}})
        assert "clientMessageId" not in await page.next("user_message")
