"""The list of sessions, and what becomes of them."""

from __future__ import annotations

from pathlib import Path

from dragoman.server.auth.named_tokens import TokenFile
from server.conftest import Serve
from support.clients.bridge_page import Page
from support.gateway_process import agent
from support.serve_process import ServeProcess


async def test_the_list_is_searched_and_kept_up_to_date(
    page: Page, serving: ServeProcess, workspace: Path
) -> None:
    one, two = await page.new_session(workspace), await page.new_session(workspace)
    await page.turn(one, "say apples")
    await page.turn(two, "say pears")
    other = await Page.open(serving)
    other.send("list_sessions")
    listed = (await other.next("session_list"))["sessions"]
    assert {each["sessionId"] for each in listed} == {one, two}
    assert {each["state"] for each in listed} == {"idle"}
    other.send("list_sessions", search="pears")
    (found,) = (await other.next("session_list"))["sessions"]
    assert (found["sessionId"], found["title"], found["agent"]) == (two, "say pears", "scripted")
    page.send("send_message", sessionId=one, content="permission")
    asked = await page.next("permission_request")

    def waits(message: dict[str, object]) -> bool:
        session = message.get("session")
        return isinstance(session, dict) and session["state"] == "waiting_for_permission"

    changed = (await other.socket.next_message(waits))["session"]
    assert (changed["sessionId"], changed["questions"]) == (one, 1)
    page.send("permission_response", requestId=asked["requestId"], outcome={"outcome": "cancelled"})
    await other.socket.next_message(lambda m: m.get("session", {}).get("state") == "idle")


async def test_a_title_that_a_person_chose_stays(page: Page, serving: ServeProcess, workspace: Path) -> None:
    session = await page.new_session(workspace)
    await page.turn(session, "say hi")
    other = await Page.open(serving)
    other.send("list_sessions")
    await other.next("session_list")
    assert (await other.ask("rename_session", sessionId=session, title="  My\ntitle "))["type"] == "ack"
    assert (await page.next("session_info", title="My title"))["seq"]
    await other.socket.next_message(lambda m: m.get("session", {}).get("title") == "My title")
    await page.turn(session, 'update {"sessionUpdate":"session_info_update","title":"The agent\'s idea"}')
    other.send("list_sessions", search="My title")
    assert (await other.next("session_list"))["sessions"][0]["sessionId"] == session


async def test_a_stored_session_is_renamed_closed_and_deleted(serve: Serve, workspace: Path) -> None:
    first = await serve()
    page = await Page.open(first)
    session = await page.new_session(workspace)
    await page.turn(session, "say hi")
    await first.gateway.kill()
    page = await Page.open(await serve())
    page.send("list_sessions")
    (listed,) = (await page.next("session_list"))["sessions"]
    assert (listed["sessionId"], listed["state"], listed["live"]) == (session, "parked", False)
    assert (await page.ask("rename_session", sessionId=session, title="old"))["type"] == "ack"
    await page.socket.next_message(
        lambda m: (
            m["type"] == "session_changed" and not m["session"]["live"] and m["session"]["title"] == "old"
        )
    )
    page.send("list_sessions", search="old")
    assert len((await page.next("session_list"))["sessions"]) == 1
    assert (await page.ask("close_session", sessionId=session))["type"] == "ack"
    await page.socket.next_message(lambda m: m.get("session", {}).get("state") == "closed")
    assert (await page.ask("delete_session", sessionId=session))["type"] == "ack"
    await page.next("session_deleted", sessionId=session)
    assert (await page.ask("load_session", sessionId=session))["code"] == "unknown_session"


async def test_a_session_that_is_deleted_elsewhere_is_told(
    page: Page, serving: ServeProcess, workspace: Path
) -> None:
    session = await page.new_session(workspace)
    other = await Page.open(serving)
    assert (await other.ask("delete_session", sessionId=session))["type"] == "ack"
    await page.next("session_deleted", sessionId=session)
    refused = await page.ask("send_message", sessionId=session, content="hello?")
    assert (refused["code"], refused["sessionId"]) == ("unknown_session", session)


async def test_mode_and_options_are_chosen_and_told_to_all(serve: Serve, workspace: Path) -> None:
    serving = await serve(agents={"scripted": agent("--modes", "--config-options")})
    page, other = await Page.open(serving), await Page.open(serving)
    page.send("new_session", cwd=str(workspace))
    created = (await page.next("session_created"))["session"]
    session = created["sessionId"]
    assert created["modes"]["currentModeId"] == "ask"
    await other.load(session)
    assert (await other.ask("change_mode", sessionId=session, modeId="code"))["type"] == "ack"
    for tab in (page, other):
        await tab.next("mode_changed", modeId="code")
    page.send("set_config_option", sessionId=session, configId="model", value="large")
    for tab in (page, other):
        await tab.socket.next_message(
            lambda m: m["type"] == "config_options" and m["options"][0]["currentValue"] == "large"
        )
    refused = await page.ask("set_config_option", sessionId="dgm_nobody", configId="model", value="large")
    assert refused["code"] == "unknown_session"


async def test_whoever_leaves_a_session_hears_no_more_of_it(
    page: Page, serving: ServeProcess, workspace: Path
) -> None:
    session = await page.new_session(workspace)
    other = await Page.open(serving)
    await other.load(session)
    assert (await other.ask("leave_session", sessionId=session))["type"] == "ack"
    await page.turn(session, "say hi")
    await other.ask("ping")
    assert other.numbered(session) == []


async def test_an_observer_reads_and_changes_nothing(serve: Serve, home: Path, workspace: Path) -> None:
    serving = await serve()
    page = await Page.open(serving)
    session = await page.new_session(workspace)
    await page.turn(session, "say hi")
    _, token = TokenFile(home / "tokens.json").create("watcher", "observe")
    watcher = await Page.open(serving, headers={"Authorization": f"Bearer {token}"})
    assert (await watcher.next("hello"))["role"] == "observe"
    await watcher.load(session)
    assert watcher.text(session) == "hi"
    for command in ("send_message", "cancel_turn", "rename_session", "delete_session"):
        refused = await watcher.ask(command, sessionId=session, content="x", title="x")
        assert (refused["type"], refused["code"]) == ("error", "role"), command
    watcher.send("list_sessions")
    assert len((await watcher.next("session_list"))["sessions"]) == 1


async def test_an_approver_answers_in_the_page_and_changes_nothing_else(
    serve: Serve, home: Path, workspace: Path
) -> None:
    serving = await serve()
    page = await Page.open(serving)
    session = await page.new_session(workspace)
    files = TokenFile(home / "tokens.json")
    pages = {}
    for role in ("observe", "approve"):
        _, token = files.create(f"one-{role}", role)
        pages[role] = await Page.open(serving, headers={"Authorization": f"Bearer {token}"})
        await pages[role].load(session)
    page.send("send_message", sessionId=session, content="permission")
    asked = (await page.next("permission_request"))["requestId"]
    outcome = {"outcome": "selected", "optionId": "yes"}
    refused = await pages["observe"].ask("permission_response", requestId=asked, outcome=outcome)
    assert (refused["type"], refused["code"]) == ("error", "role")
    for command in ("send_message", "cancel_turn", "rename_session", "delete_session", "complete_path"):
        refused = await pages["approve"].ask(command, sessionId=session, content="x", title="x", prefix="x")
        assert (refused["type"], refused["code"]) == ("error", "role"), command
    assert (await pages["approve"].ask("permission_response", requestId=asked, outcome=outcome))[
        "type"
    ] == "ack"
    await page.next("turn_complete")


async def test_a_folder_that_is_not_there_is_refused_with_a_sentence(page: Page, workspace: Path) -> None:
    refused = await page.ask("new_session", cwd=str(workspace / "nowhere"))
    assert refused["type"] == "error"
    assert "nowhere" in refused["message"]
    refused = await page.ask("new_session", cwd=str(workspace), agent="nobody")
    assert "nobody" in refused["message"]


async def test_paths_are_completed(page: Page, workspace: Path) -> None:
    (workspace / "src").mkdir()
    (workspace / "setup.py").touch()
    (workspace / ".secret").touch()
    page.send("complete_path", prefix=f"{workspace}/s")
    found = (await page.next("paths"))["entries"]
    assert [(each["name"], each["directory"]) for each in found] == [("src", True), ("setup.py", False)]
    session = await page.new_session(workspace)
    page.send("complete_path", prefix="", sessionId=session, directories=True)
    assert [each["name"] for each in (await page.next("paths"))["entries"]] == ["src"]
    page.send("complete_path", prefix=".", sessionId=session)
    assert [each["name"] for each in (await page.next("paths"))["entries"]] == [".secret"]


async def test_who_looks_at_a_session_that_is_closed_sees_it_go_on(
    page: Page, serving: ServeProcess, workspace: Path
) -> None:
    session = await page.new_session(workspace)
    await page.turn(session, "say one")
    other = await Page.open(serving)
    await other.load(session)
    assert (await page.ask("close_session", sessionId=session))["type"] == "ack"
    await page.turn(session, "say two")
    await other.next("message_chunk", content="two")
    for each in (page, other):
        assert each.text(session) == "onetwo"
        assert each.seqs(session) == list(range(1, len(each.seqs(session)) + 1))
