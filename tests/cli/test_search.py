"""`dragoman sessions search` and `GET /api/search`: where something was said."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from dragoman.search import feeder
from support.command_line import CommandLine
from support.gateway_process import Start

from .test_sessions import chunk, fill, run


@pytest.fixture(autouse=True)
def own_home(shell: CommandLine, tmp_path: Path) -> None:
    """No transcripts of the person who runs the tests."""
    shell.env["HOME"] = str(tmp_path)


async def test_a_phrase_is_found_with_its_place(shell: CommandLine) -> None:
    said = [chunk("Why?", "user_message_chunk", "P"), chunk("The connec"), chunk("tion was refused")]
    await fill(shell, dgm_aaaaaaaaaa=said, dgm_bbbbbbbbbb=[chunk("refused connection")])
    done = await run(shell, "sessions", "search", "connection was")
    assert (done.returncode, done.stderr) == (0, "")
    head, line = done.stdout.splitlines()
    assert head.startswith("dgm_aaaaaaaa  scripted  ")
    assert head.endswith(f"Title of dgm_aaaaaaaaaa  {shell.folder}")
    assert line.split() == ["#2", "agent", "The", "connection", "was", "refused"]
    assert (await run(shell, "sessions", "search", "refused", "connection")).stdout.count("#") == 2
    [hit] = json.loads((await run(shell, "sessions", "search", "why", "--json")).stdout)
    assert (hit["sessionId"], hit["event"], hit["by"]) == ("dgm_aaaaaaaaaa", 1, "user")
    assert (await run(shell, "sessions", "search", "why", "-a", "other")).returncode == 1
    assert (await run(shell, "sessions", "search", "why", "--since", "1h", "--cwd", ".")).returncode == 0


async def test_nothing_found_is_nothing_on_stdout_and_exit_code_1(shell: CommandLine) -> None:
    done = await run(shell, "sessions", "search", "word")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "no message has word\n")
    await fill(shell, dgm_aaaaaaaaaa=[chunk("something")])
    done = await run(shell, "sessions", "search", "other word", "-a", "x")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == 'no message has "other word"; try without --agent, --cwd and --since\n'


async def test_the_session_with_the_newest_hit_comes_first_with_all_of_its_hits(shell: CommandLine) -> None:
    said = [chunk("needle", "user_message_chunk", "P"), chunk("a needle")]
    await fill(shell, dgm_aaaaaaaaaa=said, dgm_bbbbbbbbbb=said)
    done = await run(shell, "sessions", "search", "needle")
    heads = [line.split()[0] for line in done.stdout.splitlines() if line.startswith("dgm_")]
    assert sorted(heads) == ["dgm_aaaaaaaa", "dgm_bbbbbbbb"], "each once"
    assert done.stdout.count("#") == 4


async def test_no_query_is_a_syntax_error_of_the_index(shell: CommandLine) -> None:
    await fill(shell, dgm_aaaaaaaaaa=[chunk("a AND b")])
    assert (await run(shell, "sessions", "search", "NEAR(", "AND")).returncode == 1
    assert (await run(shell, "sessions", "search", '"a AND')).returncode == 0
    done = await run(shell, "sessions", "search", "***")
    assert (done.returncode, done.stdout) == (2, "")
    assert "letters or digits" in done.stderr


async def test_hostile_text_reaches_no_terminal(shell: CommandLine) -> None:
    await fill(shell, dgm_aaaaaaaaaa=[chunk("needle \x1b]52;c;eHg=\x07 \x1b[2J\u202e end")])
    with shell.terminal("sessions", "search", "needle") as screen:
        assert screen.end() == 0
        shown = screen.shown
    assert "needle" in shown
    plain = await run(shell, "sessions", "search", "needle")
    for text in (shown, plain.stdout):
        assert "\x1b]" not in text
        assert "\x1b[2J" not in text
        assert "\u202e" not in text


async def test_doctor_makes_a_damaged_index_again(shell: CommandLine) -> None:
    await fill(shell, dgm_aaaaaaaaaa=[chunk("needle")])
    (shell.home / "search.db").write_bytes(b"garbage" * 1000)
    looked = await run(shell, "doctor", "search", "--json")
    assert "search.db" in looked.stdout
    fixed = json.loads((await run(shell, "doctor", "search", "--fix", "--yes", "--json")).stdout)["findings"]
    assert [each["level"] for each in fixed if each["about"] == "search"] == ["fixed", "ok"]
    done = await run(shell, "sessions", "search", "needle")
    assert (done.returncode, done.stderr) == (0, "")


async def test_it_can_be_turned_off(shell: CommandLine) -> None:
    await fill(shell, dgm_aaaaaaaaaa=[chunk("needle")])
    shell.configure(sessions={"search": False})
    done = await run(shell, "sessions", "search", "needle")
    assert done.returncode != 0
    assert "sessions.search is false" in done.stderr
    assert not (shell.home / "search.db").exists()


async def test_a_turn_of_an_editor_is_found_while_it_runs_on(dragoman: Start, shell: CommandLine) -> None:
    editor = await dragoman("acp", "scripted")
    await editor.initialize()
    session = await editor.new_session(shell.folder)
    await editor.prompt(session, "say a needle")
    done = await run(shell, "sessions", "search", "needle", "--json")
    assert {hit["by"] for hit in json.loads(done.stdout)} == {"user", "agent"}


async def test_the_background_process_ends_with_its_gateway(tmp_path: Path) -> None:
    feeding = feeder.Feeder(tmp_path)
    task = feeding.feed()
    await asyncio.sleep(0)
    await feeding.close()
    assert task.done()
