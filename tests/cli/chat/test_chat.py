"""`dragoman chat` on a pseudo terminal, with a scripted agent."""

from __future__ import annotations

import pytest

from support.clients.drawn_terminal import ENTER, UP, DrawnTerminal, answer, chat
from support.command_line import CommandLine
from support.pseudo_terminal import CTRL_C, CTRL_D

NEW_LINE, CTRL_R = "\x1b\r", "\x12"


def test_a_conversation_is_begun_left_and_continued(shell: CommandLine) -> None:
    with chat(shell) as terminal:
        terminal.type("first" + NEW_LINE + "second" + ENTER)  # before the session is there
        terminal.until("\nfirstsecond")
        terminal.until("Enter sends")
        terminal.type(CTRL_D)
        assert terminal.end() == 0
        assert "To continue: dragoman chat -s dgm_" in terminal.shown
        assert "\x1b[?1049h" not in terminal.raw, "the terminal's own scrollback is used"
        assert terminal.raw.count("firstsecond") == 1, "what is finished is printed once"
    with chat(shell, "-c") as terminal:
        terminal.until("> first\n  second")
        terminal.until("\nfirstsecond")
        terminal.type("third" + ENTER)
        terminal.until("\nthird")
        terminal.type(CTRL_R + "thi")
        terminal.until("I-search")
        terminal.type(ENTER + "\x05 again" + ENTER)
        terminal.until("\nthird again")
        terminal.type(CTRL_D)
        assert terminal.end() == 0
    history = list((shell.home / "chat").glob("*.history"))
    assert len(history) == 1 and "+third" in history[0].read_text()
    assert history[0].stat().st_mode & 0o777 == 0o600


def test_questions_queue_and_cancel(shell: CommandLine) -> None:
    with chat(shell) as terminal:
        terminal.until("Enter sends")
        terminal.type("permission" + ENTER)
        terminal.until("? Run it")
        terminal.type("x")  # within the grace, so it belongs to the line
        answer(terminal, "1")
        terminal.until("> x1")
        terminal.type("\x7f\x7f")
        answer(terminal, "3")
        terminal.until('"optionId": "no"')
        terminal.type("sleep-until-cancel" + ENTER)
        terminal.until("\nsleeping")
        terminal.type("waits" + ENTER)
        terminal.until("queued: waits")
        terminal.type(UP)
        terminal.type(" more" + ENTER)
        terminal.until("queued: waits more")
        terminal.type(CTRL_C)
        terminal.until("[cancelled]")
        terminal.until("> waits more")  # back in the editor
        terminal.type(ENTER)
        terminal.until("\nwaits more")
        terminal.type("sleep-until-cancel" + ENTER)
        terminal.until("\nsleeping", times=2)
        terminal.type(CTRL_C + CTRL_C)
        assert terminal.end() == 0
        assert terminal.shown.count("\nsleeping") == 2, "an unfinished line stays"


def test_a_signal_ends_it_with_the_terminal_as_it_was(shell: CommandLine) -> None:
    with chat(shell) as terminal:
        terminal.until("Enter sends")
        terminal.process.terminate()
        assert terminal.end() == 0
        assert "To continue" in terminal.shown and terminal.raw.count("\x1b[?2004l"), "pastes are keys again"


def test_an_agent_cannot_control_the_terminal(shell: CommandLine) -> None:
    with chat(shell) as terminal:
        update = r'{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"\u001b]0;evil\u0007\u202e."}}'
        terminal.type(f"update {update}{NEW_LINE}end{ENTER}")
        terminal.until("\n]0;evil.")
        terminal.type("!echo from the shell" + ENTER)
        terminal.until("\nfrom the shell")
        assert "\x1b]0;" not in terminal.raw and "\u202e" not in terminal.raw


def test_a_session_that_cannot_begin_leaves_the_chat_where_it_was(shell: CommandLine) -> None:
    with DrawnTerminal(shell) as terminal:
        terminal.until("Enter sends")
        terminal.type("one" + ENTER)
        terminal.until("\none")
        terminal.type("/new nobody" + ENTER)
        terminal.until("! Unknown agent")
        terminal.until("Enter sends")


def test_without_a_command_a_terminal_is_a_chat(shell: CommandLine) -> None:
    with DrawnTerminal(shell) as terminal:
        terminal.until("Enter sends")
        terminal.type("/session" + ENTER)
        terminal.until("dgm_")
        terminal.type("one" + ENTER)
        terminal.until("\none")
        terminal.until("Enter sends")
        terminal.type("/new" + ENTER)
        terminal.until("leaving dgm_")
        terminal.type("two" + ENTER)
        terminal.until("\ntwo")
        terminal.type("/sessions" + ENTER)
        terminal.until("Which session?")
        answer(terminal, "2")
        terminal.until("> one", times=2)
        terminal.type(CTRL_D)
        assert terminal.end() == 0


def test_a_session_is_watched_without_taking_part(shell: CommandLine) -> None:
    session = shell.session("watched")
    with DrawnTerminal(shell, "chat", "--read-only", "-s", session) as terminal:
        terminal.until("> watched")
        terminal.until("No process runs this session any more.")
        terminal.type("xq")
        assert terminal.end() == 0
        assert "x" not in terminal.shown.splitlines()[-1]


def test_what_is_wrong_is_told_with_what_to_do(shell: CommandLine) -> None:
    with DrawnTerminal(shell, "chat", "-c") as terminal:
        assert terminal.end() == 1
        assert "begins one" in terminal.shown
    done = shell.run("chat")
    assert done.returncode == 2 and "dragoman exec" in done.stderr
    done = shell.run("chat", "-c", "-s", "x")
    assert done.returncode == 2 and "one of" in done.stderr


@pytest.mark.long
def test_a_turn_lives_on_in_serve_and_is_cancelled_from_another_terminal(shell: CommandLine) -> None:
    with shell.start("serve", "--port", "0") as serving:
        assert serving.stdout is not None and serving.stdout.readline()
        with chat(shell) as terminal:
            terminal.type("sleep-until-cancel" + ENTER)
            terminal.until("\nsleeping")
            terminal.type(CTRL_D)
            assert terminal.end() == 0
            assert "The turn goes on in dragoman serve." in terminal.shown
        with chat(shell, "-c") as terminal:
            terminal.until("working")
            terminal.type("afterwards" + ENTER)
            terminal.until("queued: afterwards")
            terminal.type(CTRL_C)
            terminal.until("[cancelled]")
            terminal.until("> afterwards")
            terminal.type(ENTER)
            terminal.until("\nafterwards")
            terminal.type(CTRL_D)
            assert terminal.end() == 0
        serving.terminate()
