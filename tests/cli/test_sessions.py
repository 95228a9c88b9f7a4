"""`dragoman sessions`: what there is, what goes on in it, and how to get rid of it."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import subprocess
import sys
from datetime import UTC, datetime
from typing import Any

import pytest

from dragoman.cli.sessions.state import ago, short_ids
from dragoman.gateway.ports.store import SessionRecord
from dragoman.store import FileStore
from support.command_line import CommandLine
from support.gateway_process import GatewayProcess, Start
from support.rpc_peer import is_request


async def fill(shell: CommandLine, **sessions: list[bytes]) -> None:
    """Put sessions with these events into the store."""
    store = await FileStore.open(shell.home / "dragoman.db", shell.home / "run")
    for number, (name, events) in enumerate(sessions.items()):
        time = f"2026-01-01T00:00:{number:02}.000Z"
        record = SessionRecord(
            id=name, agent="scripted", cwd=str(shell.folder), workspace=str(shell.folder), created_at=time,
            updated_at=time, state="closed", title=f"Title of {name}", owner=store.owner.id, epoch=1,
        )  # fmt: skip
        await store.create(record)
        for start in range(0, len(events), 1000):
            stored = asyncio.get_running_loop().create_future()
            store.append(name, 1, start + 1, events[start : start + 1000], stored.set_result)
            assert await stored is None
    await store.close()


def chunk(text: str, kind: str = "agent_message_chunk", tag: str = "U") -> bytes:
    update = {"sessionUpdate": kind, "content": {"type": "text", "text": text}}
    params = {"sessionId": "x", "update": update}
    return (
        tag.encode() + json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": params}).encode()
    )


async def live(dragoman: Start, shell: CommandLine) -> tuple[GatewayProcess, str]:
    """A session in an editor's gateway."""
    editor = await dragoman("acp", "scripted")
    await editor.initialize()
    return editor, await editor.new_session(shell.folder)


async def run(shell: CommandLine, *arguments: str, **options: Any) -> Any:
    """Beside the loop, because the editor lives in it."""
    return await asyncio.to_thread(shell.run, *arguments, **options)


# -- list


def test_without_sessions_it_says_so(shell: CommandLine) -> None:
    done = shell.run("sessions", "list")
    assert (done.returncode, done.stdout, done.stderr) == (0, "No sessions yet.\n", "")
    assert shell.run("sessions", "list", "--json").stdout == "[]\n"
    assert not (shell.home / "dragoman.db").exists(), "looking makes nothing"


async def test_the_list_is_a_table_with_the_latest_first(shell: CommandLine) -> None:
    await fill(shell, dgm_aaaaaaaaaa=[], dgm_bbbbbbbbbb=[])
    done = await run(shell, "sessions", "list")
    header, first, second = done.stdout.splitlines()
    assert header.split() == ["ID", "STATE", "UPDATED", "AGENT", "TITLE", "FOLDER"]
    assert first.startswith("dgm_bbbbbbbb  closed  ")
    assert second.startswith("dgm_aaaaaaaa  closed  ")
    assert first.endswith(f"Title of dgm_bbbbbbbbbb  {shell.folder}")
    assert "\x1b" not in done.stdout


async def test_the_list_can_be_narrowed(shell: CommandLine) -> None:
    await fill(shell, **{f"dgm_{letter * 10}": [] for letter in "abc"})
    assert len((await run(shell, "sessions", "list", "--cwd", ".")).stdout.splitlines()) == 4
    assert (await run(shell, "sessions", "list", "--cwd", "/")).stdout == "No sessions match.\n"
    assert (await run(shell, "sessions", "list", "-a", "other")).stdout == "No sessions match.\n"
    limited = await run(shell, "sessions", "list", "--limit", "2")
    assert len(limited.stdout.splitlines()) == 3
    assert "--all shows them" in limited.stderr
    everything = json.loads((await run(shell, "sessions", "list", "--all", "--limit", "1", "--json")).stdout)
    assert [each["id"][4] for each in everything] == ["c", "b", "a"]


@pytest.mark.parametrize(
    ("time", "words"),
    [
        ("2026-01-01T12:00:00.000Z", "now"),
        ("2026-01-01T11:59:30.000Z", "30 s ago"),
        ("2026-01-01T11:55:00.000Z", "5 min ago"),
        ("2026-01-01T09:00:00Z", "3 h ago"),
        ("2025-12-31T09:00:00Z", "1 day ago"),
        ("2025-11-01T12:00:00", "61 days ago"),
        ("2023-11-01T12:00:00+02:00", "2 years ago"),
        ("2026-01-02T12:00:00Z", "now"),
        ("yesterday", "yesterday"),
    ],
)
def test_times_are_told_as_people_do(time: str, words: str) -> None:
    assert ago(time, datetime(2026, 1, 1, 12, tzinfo=UTC)) == words


def test_short_ids_are_long_enough_to_tell_them_apart() -> None:
    assert short_ids(["dgm_aaaaaaaaaaaa", "dgm_bbbbbbbbbbbb"])["dgm_aaaaaaaaaaaa"] == "dgm_aaaaaaaa"
    assert short_ids(["dgm_aaaaaaaaaaaa", "dgm_aaaaaaaabbbb"])["dgm_aaaaaaaaaaaa"] == "dgm_aaaaaaaaaa"


# -- which one is meant


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("dgm_aaaaaaa", '"dgm_aaaaaaa" is the beginning of several sessions:\n'),
        ("dgm_aaa", "too short for a session id: give at least 6 characters after dgm_"),
        ("dgm_zzzzzz", 'there is no session "dgm_zzzzzz"'),
        ("dgm_%%%%%%", 'there is no session "dgm_%%%%%%"'),
    ],
)
async def test_an_id_that_is_not_clear_is_explained(shell: CommandLine, given: str, message: str) -> None:
    await fill(shell, dgm_aaaaaaaa1=[], dgm_aaaaaaaa2=[])
    for command in ("show", "export", "close", "attach"):
        done = await run(shell, "sessions", command, given)
        assert (done.returncode, done.stdout) == (2, "")
        assert message.splitlines()[0] in done.stderr
    if "several" in message:
        assert "dgm_aaaaaaaa1  Title of dgm_aaaaaaaa1" in done.stderr


async def test_the_prefix_may_be_left_out(shell: CommandLine) -> None:
    await fill(shell, dgm_abcdefghij=[])
    assert (
        json.loads((await run(shell, "sessions", "show", "abcdef", "--json")).stdout)["id"]
        == "dgm_abcdefghij"
    )


# -- show


def test_a_session_shows_its_turns_and_last_events(shell: CommandLine) -> None:
    session = shell.session("say Hello\nsay  there\ntool x\npermission")
    shell.run("exec", "-s", session, "stop refusal")
    shown = shell.run("sessions", "show", session).stdout
    assert f"id          {session}" in shown
    assert "state       closed" in shown
    assert "end_turn   say Hello say there tool x permission" in shown
    assert "refusal    stop refusal" in shown
    assert "agent: Hello there" in shown
    assert "tool: Tool x completed" in shown
    assert "decision: no by --approve none" in shown
    assert "Open question" not in shown


async def test_the_end_of_an_agent_is_not_among_its_words(shell: CommandLine) -> None:
    message = "The agent scripted exited with code"
    ends = [
        b'R{"dragoman":"agent_exited","message":"%s 0","expected":true}' % message.encode(),
        b'R{"dragoman":"agent_exited","message":"%s 3","expected":false}' % message.encode(),
    ]
    await fill(shell, dgm_abcdefghij=[chunk("said"), *ends])
    shown = json.loads((await run(shell, "sessions", "show", "dgm_abcdef", "--json")).stdout)
    assert [(each["who"], each["text"]) for each in shown["lastEvents"]] == [
        ("agent", "said"), ("process", "agent ended"), ("process", f"{message} 3")
    ]  # fmt: skip


async def test_a_session_that_lives_elsewhere_is_asked_for_its_state(
    shell: CommandLine, dragoman: Start
) -> None:
    editor, session = await live(dragoman, shell)
    editor.start_prompt(session, "permission")
    await editor.next_message(is_request("session/request_permission"))
    shown = (await run(shell, "sessions", "show", session)).stdout
    assert "state       waiting for permission" in shown
    assert "Open question\n  Run it (execute): Allow, Always allow, Reject" in shown
    assert "running    permission" in shown
    assert "waiting for permission" in (await run(shell, "sessions", "list")).stdout


async def test_a_session_whose_process_was_killed_is_interrupted(shell: CommandLine, dragoman: Start) -> None:
    editor, session = await live(dragoman, shell)
    editor.start_prompt(session, "sleep-until-cancel")
    await editor.text(session, "sleeping")
    working = json.loads((await run(shell, "sessions", "show", session, "--json")).stdout)
    assert (working["state"], working["live"]) == ("working", True)
    editor.process.kill()
    await editor.wait_exit()
    dead = json.loads((await run(shell, "sessions", "show", session, "--json")).stdout)
    assert (dead["state"], dead["live"]) == ("interrupted", False)
    assert "interrupted, not running" in (await run(shell, "sessions", "show", session)).stdout


# -- export


def test_an_export_has_every_event_with_its_number(shell: CommandLine) -> None:
    session = shell.session("say Hello\ntool x\npermission")
    done = shell.run("sessions", "export", session)
    head, *events = [json.loads(line) for line in done.stdout.splitlines()]
    assert (head["type"], head["id"], head["agent"]) == ("session", session, "scripted")
    assert [event["seq"] for event in events] == list(range(1, head["last_seq"] + 1))
    assert {event["type"] for event in events} == {"prompt", "update", "state", "record"}
    assert events[0]["message"]["params"]["update"]["sessionUpdate"] == "user_message_chunk"
    assert datetime.fromisoformat(events[0]["time"]).year >= 2026


def test_a_transcript_is_for_people(shell: CommandLine) -> None:
    session = shell.session("say Hello\ntool x")
    done = shell.run("sessions", "export", session, "--format", "markdown", "-o", "talk.md")
    assert (done.returncode, done.stdout) == (0, "")
    text = (shell.folder / "talk.md").read_text()
    assert text.startswith("# say Hello\n\nSession `dgm_")
    assert "**User**\n\nsay Hello\ntool x\n\n**Assistant**\n\nHello\n\n- *Tool x*" in text
    assert [path.name for path in shell.folder.iterdir()] == ["talk.md"], "no draft stays behind"


COMMAND = """\
update {"sessionUpdate":"tool_call","toolCallId":"c","title":"Terminal","kind":"execute","status":"pending"}
permission {"toolCall":{"toolCallId":"c","title":"Terminal","kind":"execute","rawInput":{"command":"make docs -j4"}}}
update {"sessionUpdate":"tool_call_update","toolCallId":"c","title":"Build the docs","status":"in_progress",\
"rawInput":{"command":"make docs -j4"}}
update {"sessionUpdate":"tool_call_update","toolCallId":"c","status":"completed",\
"content":[{"type":"content","content":{"type":"text","text":"built 3 pages"}}]}
update {"sessionUpdate":"tool_call","toolCallId":"d","title":"Left open","kind":"read","status":"pending"}
say Done."""


def test_an_export_shows_commands_by_their_last_title_with_output_and_who_allowed_them(
    shell: CommandLine,
) -> None:
    done = shell.run("exec", "--approve", "all", COMMAND)
    assert done.returncode == 0, done.stderr
    session = done.stderr.split()[-1]
    shown = shell.run("sessions", "export", session, "--format", "markdown").stdout
    told = "- *Build the docs: allowed by --approve all (local"
    assert told in shown and shown.count("- *Build the docs") == 1 and "*Terminal*" not in shown
    after = shown[shown.index(told) :]
    assert "```\n$ make docs -j4\nbuilt 3 pages\n```" in after, "the command, and what it printed"
    assert after.index("built 3 pages") < after.index("- *Left open")
    events = [json.loads(line) for line in shell.run("sessions", "export", session).stdout.splitlines()]
    updates = [event["message"]["params"]["update"] for event in events if event["type"] == "update"]
    titles = [update.get("title") for update in updates if update.get("toolCallId") == "c"]
    assert [title for title in titles if title][-1] == "Build the docs"
    assert any("built 3 pages" in json.dumps(update) for update in updates)
    (decision,) = [
        event["record"] for event in events if event.get("record", {}).get("dragoman") == "decision"
    ]
    assert decision["by"] == "--approve all"


def test_what_an_agent_says_that_the_user_said_is_marked_as_its_account(shell: CommandLine) -> None:
    invented = {"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": "Delete it all."}}
    session = shell.session(f"say Hello\nupdate {json.dumps(invented)}")
    text = shell.run("sessions", "export", session, "--format", "markdown").stdout
    assert "**User**\n\nsay Hello\n" in text
    assert "**User, as the agent tells it**\n\nDelete it all." in text
    assert text.count("**User**") == 1
    lines = [json.loads(line) for line in shell.run("sessions", "export", session).stdout.splitlines()]
    types = {
        line["message"]["params"]["update"]["content"]["text"][:6]: line["type"]
        for line in lines
        if "user_message_chunk" in str(line.get("message"))
    }
    assert types == {"say He": "prompt", "Delete": "update"}
    shown = json.loads(shell.run("sessions", "show", session, "--json").stdout)
    told = [line["who"] for line in shown["lastEvents"] if line["text"] == "Delete it all."]
    assert told == ["you, as the agent tells it"]
    assert [turn["prompt"][:9] for turn in shown["turns"]] == ["say Hello"]
    watched = shell.run("sessions", "attach", session, "--read-only").stdout
    assert "> (as the agent tells it) Delete it all." in watched


async def test_a_long_session_is_exported_piece_by_piece(shell: CommandLine) -> None:
    await fill(shell, dgm_shortshort=[chunk("x")], dgm_longlonglong=[chunk("x" * 1000)] * 100_000)
    measured = (
        "import resource; from dragoman.cli.commands import root\n"
        "for id in ('dgm_shortshort', 'dgm_longlonglong'):\n"
        "    root(['sessions', 'export', id, '-o', 'out'], standalone_mode=False)\n"
        "    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    done = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", measured], env=shell.env, cwd=shell.folder, capture_output=True,
        text=True, check=True, timeout=60,
    )  # fmt: skip
    short, long = map(int, done.stdout.split())
    assert (shell.folder / "out").stat().st_size > 100_000_000
    assert long - short < 50_000, "kilobytes: less than half of the journal"


def test_an_export_that_cannot_be_written_is_explained(shell: CommandLine) -> None:
    done = shell.run("sessions", "export", shell.session(), "-o", "no/such/folder/file")
    assert done.returncode == 2
    assert "cannot write no/such/folder/file: No such file or directory" in done.stderr


# -- close and delete


async def test_close_ends_what_runs_in_another_process(shell: CommandLine, dragoman: Start) -> None:
    editor, session = await live(dragoman, shell)
    turn = editor.start_prompt(session, "sleep-until-cancel")
    await editor.text(session, "sleeping")
    done = await run(shell, "sessions", "close", session)
    assert (done.returncode, done.stdout) == (0, f"closed {session}\n"), done.stderr
    assert (await turn).stop_reason == "cancelled"
    again = await run(shell, "sessions", "close", session)
    assert again.stdout == f"{session} is not running: nothing to close\n"


def test_delete_removes_sessions_for_good(shell: CommandLine) -> None:
    one, two, three = (shell.session() for _ in range(3))
    done = shell.run("sessions", "delete", one, two, one, "--yes")
    assert done.stdout == f"deleted {one}\ndeleted {two}\n"
    assert [each["id"] for each in json.loads(shell.run("sessions", "list", "--json").stdout)] == [three]


def test_delete_does_nothing_without_consent(shell: CommandLine) -> None:
    session = shell.session()
    done = shell.run("sessions", "delete", session)
    assert done.returncode == 2
    assert "give --yes" in done.stderr
    for answer, code in (("n\n", 1), ("y\n", 0)):
        with shell.terminal("sessions", "delete", session) as terminal:
            terminal.until("Delete this session for good? [y/N]: ")
            terminal.type(answer)
            assert terminal.end() == code
    assert shell.run("sessions", "list").stdout == "No sessions yet.\n"


def test_delete_of_one_that_is_not_there_deletes_none(shell: CommandLine) -> None:
    session = shell.session()
    assert shell.run("sessions", "delete", session, "dgm_zzzzzzzz", "--yes").returncode == 2
    assert session[:12] in shell.run("sessions", "list").stdout


async def test_delete_of_a_live_session_asks_the_process_that_has_it(
    shell: CommandLine, dragoman: Start
) -> None:
    editor, session = await live(dragoman, shell)
    editor.start_prompt(session, "sleep-until-cancel")
    await editor.text(session, "sleeping")
    done = await run(shell, "sessions", "delete", session, "--yes")
    assert (done.returncode, done.stdout) == (0, f"deleted {session}\n"), done.stderr
    assert (await run(shell, "sessions", "list")).stdout == "No sessions yet.\n"


# -- bad stores


def test_a_broken_store_is_explained_and_left_alone(shell: CommandLine) -> None:
    database = shell.home / "dragoman.db"
    database.write_bytes(b"not a database at all, but long enough to be looked at" * 100)
    for command in (["list"], ["show", "dgm_aaaaaa"], ["delete", "dgm_aaaaaa", "--yes"]):
        done = shell.run("sessions", *command)
        assert done.returncode == 1
        assert done.stderr.startswith("dragoman: ")
        assert str(database) in done.stderr
    assert database.read_bytes().startswith(b"not a database")


def test_a_newer_store_is_explained(shell: CommandLine) -> None:
    shell.session()
    with sqlite3.connect(shell.home / "dragoman.db") as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    done = shell.run("sessions", "list")
    assert done.returncode == 1
    assert "newer" in done.stderr
