"""What the line and what is around it do in `dragoman chat`: help, completion, hints, menus."""

from __future__ import annotations

from support.clients.drawn_terminal import ENTER, UP, answer, chat
from support.command_line import CommandLine
from support.pseudo_terminal import CTRL_C, CTRL_D

DOWN, TAB, NEW_LINE, CTRL_U = "\x1b[B", "\t", "\x1b\r", "\x15"
COMMANDS = (
    '{"sessionUpdate":"available_commands_update","availableCommands":'
    '[{"name":"plan","description":"Make a plan","input":{"hint":"what for"}}]}'
)


def test_help_hints_and_completion(shell: CommandLine) -> None:
    with chat(shell) as terminal:
        terminal.until("Enter sends")
        terminal.type(f"update {COMMANDS}{NEW_LINE}given{ENTER}")
        terminal.until("\ngiven")
        terminal.until("Enter sends")
        terminal.type("/help" + ENTER)
        terminal.until("/plan      Make a plan · what for")
        terminal.type("/pl" + TAB)
        terminal.until("> /plan")
        terminal.type(TAB + TAB + " x" + ENTER)
        terminal.until("\n/plan x")
        terminal.until("Enter sends")
        terminal.type("/sess")
        terminal.until("\n  /sessions")
        for chosen in ("> /sessions\n", "> /session\n", "> /sessions\n", "> /session\n"):
            terminal.type(TAB)  # round, and never back to what was typed
            terminal.until(chosen)
        terminal.type(ENTER)
        terminal.type(ENTER)
        terminal.until("\ndgm_")
        terminal.type("permission" + ENTER)
        terminal.until("? Run it")
        terminal.type("7")
        terminal.until("clear the line to answer (Ctrl-U)")
        terminal.type(CTRL_U)
        answer(terminal, "3")
        terminal.until('"optionId": "no"')
        assert "clear the line" not in terminal.shown
        terminal.type(CTRL_D)
        assert terminal.end() == 0


def test_a_menu_of_sessions_takes_the_arrows_at_once(shell: CommandLine) -> None:
    shell.session("older")
    shell.session("newer")
    with chat(shell, "-r") as terminal:
        terminal.until("Which session?")
        terminal.type(DOWN)
        terminal.until("› 2")
        terminal.type(ENTER)
        terminal.until("> older")


def test_without_a_model_it_says_how_to_get_one(shell: CommandLine) -> None:
    with chat(shell, "builtin") as terminal:
        terminal.until("no model: set ANTHROPIC_API_KEY")
        terminal.until("builtin · no model ·")


def test_a_message_that_was_edited_elsewhere_comes_back_as_edited(shell: CommandLine) -> None:
    shell.configure(sessions={"queue": 3})
    with chat(shell) as terminal:
        terminal.until("Enter sends")
        terminal.type("sleep-until-cancel" + ENTER)
        terminal.until("\nsleeping")
        terminal.type("/session" + ENTER)
        terminal.until("\ndgm_")
        id = next(line for line in terminal.shown.splitlines() if line.startswith("dgm_"))
        for number, keys in ((1, UP), (2, CTRL_C)):
            terminal.type(f"first {number}{ENTER}")
            terminal.until(f"queued: first {number}")
            waiting = shell.run("queue", id).stdout
            done = shell.run("queue", id, "edit", waiting.splitlines()[1].split()[0], f"second {number}")
            assert done.returncode == 0, (waiting, done.stderr)
            terminal.type(keys)
            terminal.until(f"> second {number}")
            terminal.type(CTRL_U)
