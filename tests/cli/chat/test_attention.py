"""Notifications, what waits, and messages for the running turn in `dragoman chat`."""

from __future__ import annotations

from support.clients.drawn_terminal import ENTER, chat
from support.command_line import CommandLine
from support.pseudo_terminal import CTRL_C

FOCUS_IN, FOCUS_OUT, CTRL_S = "\x1b[I", "\x1b[O", "\x13"


def test_a_window_that_is_not_in_front_is_notified_and_what_waits_is_shown_as_edited(
    shell: CommandLine,
) -> None:
    shell.configure(sessions={"queue": 3})
    with chat(shell) as terminal:
        terminal.until("Enter sends")
        terminal.type("say one" + ENTER)
        terminal.until("\none")
        terminal.until("Enter sends")
        assert "\x1b]9;" not in terminal.raw, "it is in front"
        terminal.type(FOCUS_OUT + "say two" + ENTER)
        terminal.until("\ntwo")
        terminal.until("Enter sends")
        assert terminal.raw.count("\x1b]9;scripted has ended its turn\x1b\\\x07") == 1
        terminal.type(FOCUS_IN + "sleep-until-cancel" + ENTER)
        terminal.until("\nsleeping")
        terminal.type("/session" + ENTER)
        terminal.until("\ndgm_")
        id = next(line for line in terminal.shown.splitlines() if line.startswith("dgm_"))
        terminal.type("first" + ENTER)
        terminal.until("queued: first")
        waiting = shell.run("queue", id).stdout
        shell.run("queue", id, "edit", waiting.splitlines()[1].split()[0], "second")
        terminal.until("queued: second")
        terminal.type(CTRL_S)
        terminal.until("> second  (for the running turn)")
        terminal.until("takes no message in mid-turn: your message is sent")
        terminal.type(CTRL_C)
        terminal.until("[cancelled]")


def test_notifications_can_be_turned_off(shell: CommandLine) -> None:
    shell.configure(chat={"notify": "never"})
    with chat(shell) as terminal:
        terminal.until("Enter sends")
        terminal.type(FOCUS_OUT + "say one" + ENTER)
        terminal.until("\none")
        terminal.until("Enter sends")
        assert "\x1b]9;" not in terminal.raw
