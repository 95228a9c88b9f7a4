"""Commands of `dragoman chat` that look at a session or change it."""

from __future__ import annotations

import base64

from support.clients.drawn_terminal import ENTER, answer, chat
from support.command_line import CommandLine
from support.gateway_process import agent
from support.pseudo_terminal import CTRL_C, CTRL_D

ESCAPE, TAB, CTRL_U = "\x1b", "\t", "\x15"


def test_going_back_and_what_was_changed(shell: CommandLine) -> None:
    shell.configure(checkpoints={"enabled": True})
    with chat(shell) as terminal:
        terminal.until("Enter sends")
        terminal.type("/rewind" + ENTER)
        terminal.until("no message to go back to yet")
        terminal.type("say one" + ENTER)
        terminal.until("\none")
        terminal.until("Enter sends")
        terminal.type("sh echo old > kept.txt" + ENTER)
        terminal.until("> sh echo")
        terminal.until("Enter sends")
        terminal.type("/changes" + ENTER)
        terminal.until("A kept.txt +1 -0")
        terminal.until("\n  +old")
        terminal.type("/rewind" + ENTER)
        terminal.until("Back to before which message?")
        terminal.until("› 1   2  sh echo old")
        terminal.type("1")
        terminal.until("kept.txt +1 -0")
        terminal.until("2 The conversation and the files: 1 message, 1 file")
        terminal.type("2")
        terminal.until("1 message undone")
        terminal.until("restored: kept.txt")
        terminal.until("> sh echo old > kept.txt", times=2)  # the second one is in the editor
        assert not (shell.folder / "kept.txt").exists()
        terminal.type(CTRL_U + "/undo" + ENTER)
        terminal.until("1 message brought back")
        assert (shell.folder / "kept.txt").read_text() == "old\n"
        terminal.type("sleep-until-cancel" + ENTER)
        terminal.until("\nsleeping")
        terminal.type("/rewind" + ENTER)
        terminal.until("a turn runs: wait until it ends, or cancel it with Ctrl-C, then /rewind again")


def test_agents_copies_exports_and_leaving(shell: CommandLine) -> None:
    shell.configure(agents={"other": agent()})
    with chat(shell) as terminal:
        terminal.until("Enter sends")
        terminal.type("/copy" + ENTER)
        terminal.until("the agent has said nothing yet")
        terminal.type("say to be copied" + ENTER)
        terminal.until("\nto be copied")
        terminal.until("Enter sends")
        terminal.type("/copy" + ENTER)
        terminal.until("copied 12 characters")
        assert f"\x1b]52;c;{base64.b64encode(b'to be copied').decode()}\x07" in terminal.raw
        terminal.type("/export talk.md" + ENTER)
        terminal.until("written: ")
        assert "to be copied" in (shell.folder / "talk.md").read_text()
        terminal.type("/export talk.md" + ENTER)
        terminal.until("is there already")
        terminal.type("/agents" + ENTER)
        terminal.until("* scripted")
        terminal.type("/switch oth" + TAB)
        terminal.until("> /switch other")
        terminal.type(ENTER)
        terminal.until("leaving dgm_")
        terminal.until("other ·")
        terminal.type("say by another" + ENTER)
        terminal.until("to be copied</transcript>")  # the other agent gets what was said
        terminal.until("Enter sends")
        terminal.type("sleep-until-cancel" + ENTER)
        terminal.until("\nsleeping")
        terminal.type("/detach" + ENTER)
        terminal.until("this chat has a gateway of its own")
        terminal.type(CTRL_C)
        terminal.until("[cancelled]")
        terminal.type("/detach" + ENTER)
        assert terminal.end() == 0
        assert "To continue" in terminal.shown


def test_a_question_is_rejected_with_a_reason(shell: CommandLine) -> None:
    with chat(shell) as terminal:
        terminal.until("Enter sends")
        terminal.type("permission" + ENTER)
        terminal.until("4 Reject, because …")
        answer(terminal, "4")
        terminal.until("\nbecause:")
        terminal.type(ESCAPE)
        terminal.until("4 Reject, because …")
        terminal.type("4")
        terminal.until("\nbecause:")
        terminal.type("late" + ENTER)
        terminal.until("Rejected, because late")
        terminal.until('"reason": "late"')
        assert '"optionId": "no"' in terminal.shown
        terminal.until("it gets it as your next message")
        terminal.until("> late")
        terminal.until("\nlate")
        terminal.type(CTRL_D)
        assert terminal.end() == 0
