"""A session with a damaged journal in the terminal: what is lost is told wherever the session is shown."""

from __future__ import annotations

import json

import pytest

from support.command_line import CommandLine
from support.gateway_process import Start

from .test_sessions import live, run


@pytest.fixture
async def damaged(dragoman: Start, shell: CommandLine) -> tuple[str, int, int]:
    """A session of three turns, and which events of the second one are lost."""
    editor, session = await live(dragoman, shell)
    for word in ("first", "second", "third"):
        await editor.prompt(session, f"say {word}")
    editor.leave()
    await editor.wait_exit()
    for file in (shell.home / "journal" / session).glob("*.log"):
        file.write_bytes(file.read_bytes().replace(b"second", b"SECOND"))
    lines = [
        json.loads(line) for line in (await run(shell, "sessions", "export", session)).stdout.splitlines()
    ]
    lost = [line for line in lines if line["type"] == "events_lost"]
    return session, lost[0]["firstSeq"], lost[-1]["seq"]


async def test_an_export_has_a_line_in_the_place_of_lost_events(
    shell: CommandLine, damaged: tuple[str, int, int]
) -> None:
    session, first, last = damaged
    head, *lines = [
        json.loads(line) for line in (await run(shell, "sessions", "export", session)).stdout.splitlines()
    ]
    assert not {"owner", "epoch", "node"} & head.keys()
    number = 0
    for line in lines:
        assert line.get("firstSeq", line["seq"]) == number + 1, "no number is passed over in silence"
        number = line["seq"]
        assert line["time"] is None if line["type"] == "events_lost" else line["time"]
    assert number == head["last_seq"] and first <= last
    assert "second" not in str(lines).lower()


async def test_a_transcript_says_what_is_lost(shell: CommandLine, damaged: tuple[str, int, int]) -> None:
    text = (await run(shell, "sessions", "export", damaged[0], "--format", "md")).stdout
    assert text.index("first") < text.index("damaged or missing in the journal.]*\n\n") < text.index("third")


async def test_show_says_what_is_lost(shell: CommandLine, damaged: tuple[str, int, int]) -> None:
    session, first, last = damaged
    shown = (await run(shell, "sessions", "show", session)).stdout
    assert f"lost        {first} to " in shown and "notice: Event" in shown
    facts = json.loads((await run(shell, "sessions", "show", session, "--json")).stdout)
    assert facts["lost"][0]["firstSeq"] == first and facts["lost"][-1]["lastSeq"] == last
    assert [turn["prompt"] for turn in facts["turns"]][-1] == "say third"


@pytest.mark.parametrize("way", [["--read-only"], []], ids=["watching", "attached"])
async def test_attach_says_what_is_lost(
    shell: CommandLine, damaged: tuple[str, int, int], way: list[str]
) -> None:
    done = await run(shell, "sessions", "attach", damaged[0], *way, stdin="")
    said = done.stdout + done.stderr
    assert said.index("first") < said.index(" damaged ") < said.index("third")


@pytest.mark.parametrize("way", [[], ["--quiet"]], ids=["plain", "quiet"])
async def test_exec_says_what_is_lost(
    shell: CommandLine, damaged: tuple[str, int, int], way: list[str]
) -> None:
    done = await run(shell, "exec", *way, "-s", damaged[0], "say fourth")
    assert (done.returncode, done.stdout) == (0, "fourth\n")
    told = [line for line in done.stderr.splitlines() if line.startswith("! ")]
    assert len(told) == 1 and str(damaged[1]) in told[0] and "damaged or missing in the journal" in told[0]


async def test_exec_tells_programs_what_is_lost(shell: CommandLine, damaged: tuple[str, int, int]) -> None:
    done = await run(shell, "exec", "--json", "-s", damaged[0], "say fourth")
    messages = [json.loads(line) for line in done.stdout.splitlines()]
    told = [m["params"] for m in messages if "notice" in str(m.get("params"))]
    assert [(each["sessionId"], each["update"]["severity"]) for each in told] == [(damaged[0], "error")]
    assert "damaged or missing in the journal" in told[0]["update"]["title"]
