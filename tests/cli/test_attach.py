"""`dragoman sessions attach`: a chat on a terminal, plain text elsewhere."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from support.clients.drawn_terminal import ENTER, DrawnTerminal, answer
from support.command_line import CommandLine
from support.gateway_process import GatewayProcess, Start
from support.pseudo_terminal import CTRL_C, CTRL_D, Terminal
from support.rpc_peer import is_request

READY = "Enter sends"


async def live(dragoman: Start, shell: CommandLine) -> tuple[GatewayProcess, str]:
    """A session in an editor's gateway."""
    editor = await dragoman("acp", "scripted")
    await editor.initialize()
    return editor, await editor.new_session(shell.folder)


async def run(shell: CommandLine, *arguments: str, **options: Any) -> Any:
    """Beside the loop, because the editor lives in it."""
    return await asyncio.to_thread(shell.run, *arguments, **options)


async def attached(shell: CommandLine, session: str) -> DrawnTerminal:
    """`dragoman sessions attach`, ready for keys; beside the loop, because the editor lives in it."""
    terminal = DrawnTerminal(shell, "sessions", "attach", session)
    await shows(terminal, READY)
    return terminal


async def shows(terminal: Terminal, text: str, *, times: int = 1) -> None:
    await asyncio.to_thread(partial(terminal.until, text, times=times))


async def leave(terminal: Terminal) -> None:
    terminal.type(CTRL_D)
    assert await asyncio.to_thread(terminal.end) == 0


# -- on a terminal


async def test_a_session_of_an_editor_is_followed_answered_and_cancelled(
    shell: CommandLine, dragoman: Start
) -> None:
    editor, session = await live(dragoman, shell)
    await editor.prompt(session, "say before")
    with await attached(shell, session) as terminal:
        await shows(terminal, "> say before\n\nbefore\n")
        turn = editor.start_prompt(session, "say from the editor\npermission")
        await shows(terminal, "? Run it")
        assert "> say from the editor" in terminal.shown
        await asyncio.to_thread(answer, terminal, "3")
        assert (await turn).report("permission")["result"]["outcome"]["optionId"] == "no"
        terminal.type("say from the terminal" + ENTER)
        await editor.next_message(lambda message: "from the terminal" in json.dumps(message))
        await editor.next_message(lambda message: "stopReason" in json.dumps(message))
        turn = editor.start_prompt(session, "sleep-until-cancel dozing")
        await shows(terminal, "\ndozing")
        terminal.type("say afterwards" + ENTER)
        await shows(terminal, "queued: say afterwards")
        terminal.type(CTRL_C)
        assert (await turn).stop_reason == "cancelled"
        await shows(terminal, "[cancelled]")
        await shows(terminal, "> say afterwards")
        assert "\nafterwards" not in terminal.shown, "what waited is not sent, but back in the editor"
        terminal.type(ENTER)
        await shows(terminal, "\nafterwards")
        await leave(terminal)


@pytest.mark.parametrize("moment", [0, 1, 5])
async def test_a_question_takes_no_key_of_a_line_that_was_begun_before_it(
    shell: CommandLine, dragoman: Start, moment: int
) -> None:
    editor, session = await live(dragoman, shell)
    with await attached(shell, session) as terminal:
        text = "say 1 gr\u00f6\u00dfer \u6f22"
        terminal.type(text[:moment])
        turn = editor.start_prompt(session, "permission")
        await shows(terminal, "? Run it")
        terminal.type(text[moment:])
        await shows(terminal, f"> {text}")
        terminal.type(ENTER)
        await shows(terminal, "queued: say 1")
        assert not turn.done(), "neither a digit nor Enter of the line has answered"
        await asyncio.to_thread(answer, terminal, "3")
        assert (await turn).report("permission")["result"]["outcome"]["optionId"] == "no"
        await shows(terminal, "\n1 gr\u00f6\u00dfer \u6f22")
        await leave(terminal)


async def test_leaving_lets_a_turn_and_a_question_in_another_process_go_on(
    shell: CommandLine, dragoman: Start
) -> None:
    editor, session = await live(dragoman, shell)
    go = shell.folder / "go"
    with await attached(shell, session) as terminal:
        terminal.type(f"wait-file {go}" + ENTER)
        await editor.next_message(lambda message: "wait-file" in json.dumps(message))
        await leave(terminal)
        assert "cancel" not in terminal.shown.replace("Ctrl-C cancels", "")
    assert not any("cancelled" in json.dumps(message) for message in editor.received)
    go.touch()
    ended = await editor.next_message(lambda message: "stopReason" in json.dumps(message))
    assert "end_turn" in json.dumps(ended)
    with await attached(shell, session) as terminal:
        turn = editor.start_prompt(session, "permission")
        await shows(terminal, "? Run it")
        terminal.process.terminate()
        assert await asyncio.to_thread(terminal.end) == 0
    question = await editor.next_message(is_request("session/request_permission"))
    editor.reply(question, {"outcome": {"outcome": "selected", "optionId": "yes"}})
    assert (await turn).report("permission")["result"]["outcome"]["optionId"] == "yes"


async def test_a_turn_that_was_interrupted_is_said_to_be_so_and_the_session_goes_on(
    shell: CommandLine, dragoman: Start
) -> None:
    words = "! This turn was interrupted, or its end could not be saved."
    editor, session = await live(dragoman, shell)
    with await attached(shell, session) as first, await attached(shell, session) as second:
        editor.start_request(
            "session/prompt",
            {"sessionId": session, "prompt": [{"type": "text", "text": "say half\nsleep-until-cancel"}]},
        )
        await shows(first, "sleeping")
        await editor.kill()
        await shows(first, words)
        first.type("say goes on" + ENTER)
        await shows(first, "\ngoes on")
        await shows(second, "\ngoes on")
        await leave(first)
        second.type("say still here" + ENTER)
        await shows(second, "\nstill here")
        await leave(second)
    again = (await run(shell, "sessions", "attach", session, stdin="")).stdout
    assert again.count(words) == 1
    assert again.index("half") < again.index(words) < again.index("> say goes on")
    assert again.endswith("still here\n"), "nothing seen is lost"


async def test_a_session_is_watched_on_a_terminal(shell: CommandLine) -> None:
    session = await asyncio.to_thread(shell.session, "say done")
    with DrawnTerminal(shell, "sessions", "attach", "--read-only", session) as terminal:
        await shows(terminal, "No process runs this session any more.")
        terminal.type("q")
        assert await asyncio.to_thread(terminal.end) == 0


# -- elsewhere


def test_lines_from_a_pipe_are_prompts(shell: CommandLine) -> None:
    session = shell.session("say one")
    done = shell.run("sessions", "attach", session, stdin="say two\nsay three\n")
    assert done.returncode == 0
    assert done.stdout.splitlines() == ["> say one", "one", "> say two", "two", "> say three", "three"]


async def test_attach_shows_in_a_replay_how_turns_ended(shell: CommandLine, dragoman: Start) -> None:
    editor, session = await live(dragoman, shell)
    turn = editor.start_prompt(session, "sleep-until-cancel")
    await editor.text(session, "sleeping")
    editor.notify("session/cancel", {"sessionId": session})
    await turn
    await editor.prompt(session, "say after")
    shown = (await run(shell, "sessions", "attach", session, stdin="")).stdout
    assert shown.index("[cancelled]") < shown.index("> say after")
    assert "end_turn" not in shown


async def test_who_only_watches_changes_nothing(shell: CommandLine, dragoman: Start, tmp_path: Path) -> None:
    editor, session = await live(dragoman, shell)
    with shell.start("sessions", "attach", "--read-only", session) as watching:
        assert watching.stdout is not None
        editor.start_prompt(session, "say watched\npermission")
        read = watching.stdout.readline
        assert [await asyncio.to_thread(read) for _ in range(4)] == [
            "> say watched\n", "permission\n", "watched\n", "? Run it (execute)\n"
        ]  # fmt: skip
        await editor.next_message(is_request("session/request_permission"))
        editor.leave()
        assert await asyncio.to_thread(watching.wait, 30) == 0
        assert "No process runs this session any more." in watching.stdout.read()


def test_watching_a_session_that_nobody_runs_shows_it_and_ends(shell: CommandLine) -> None:
    session = shell.session("say done")
    done = shell.run("sessions", "attach", "--read-only", session)
    assert done.stdout.splitlines() == ["> say done", "done", "No process runs this session any more."]
