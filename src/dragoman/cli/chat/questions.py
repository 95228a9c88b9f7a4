"""Questions of the agent: what is printed of them, and the menu that answers."""

from __future__ import annotations

from collections.abc import Callable

from dragoman.cli.chat.editor.editor import Asked
from dragoman.cli.chat.lines.transcript import Transcript
from dragoman.cli.chat.menu import SHOWN, Choice, Menu
from dragoman.cli.chat.screen import ChatScreen
from dragoman.cli.terminal.approvals import approval_lines
from dragoman.cli.terminal.narrator import question_lines
from dragoman.client import Question
from dragoman.gateway.rewriting.tool_text import ToolContents
from dragoman.wire.json_types import as_object, own_meta

BECAUSE = "Reject, because …"
BECAUSE_SIGN = "because: "


def ask(
    question: Question,
    screen: ChatScreen,
    transcript: Transcript,
    contents: ToolContents,
    say: Callable[[str, str], None],
    send: Callable[[str], None],
) -> None:
    """Print a question and show its options until it is answered, here or elsewhere.

    `send` gets the reason of a rejection as a prompt, if the agent takes none with an answer.
    """
    tool = dict(question.tool)
    facts = own_meta(dict(question.raw))
    about = as_object(facts.get("policy"))
    why = about.get("why")
    notes = [*([str(why)] if why else []), *approval_lines(as_object(facts.get("approval")))]
    shown = list(question_lines(tool, contents))
    transcript.asked(question.title, str(tool.get("toolCallId")), shown, notes)
    choices = [Choice(option.name or option.id, option.lasting) for option in question.options]
    if _can_be_refused(question) and len(choices) < SHOWN:
        choices.append(Choice(BECAUSE))

    def chosen(index: int) -> None:
        if index == len(question.options):
            screen.editor.ask(asked)
            screen.refresh()
            return
        screen.close_menu(menu)
        question.choose(question.options[index])
        say(f"  {choices[index].label}", "bold")

    def explained(reason: str | None) -> None:
        if reason is None:
            return  # back to the options
        screen.close_menu(menu)
        question.reject(reason)
        say(f"  Rejected, because {reason}", "bold")
        if about.get("takesReason") is not True:
            say("  this agent takes no reason with an answer: it gets it as your next message", "")
            send(reason)

    def withdrawn() -> None:
        screen.editor.stop_asking(asked)
        screen.close_menu(menu)
        say("  answered elsewhere, or no longer asked", "")

    asked = Asked(BECAUSE_SIGN, explained)
    menu = Menu([], choices, chosen)
    question.on_withdrawn(withdrawn)
    screen.ask(menu)


def _can_be_refused(question: Question) -> bool:
    return any(option.kind.startswith("reject") for option in question.options)
