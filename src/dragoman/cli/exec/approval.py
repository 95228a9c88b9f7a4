"""Answers the agent's permission questions in the terminal: by the rule of `--approve`, or by asking the user."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Literal

from dragoman.cli.terminal.keyboard import Keyboard
from dragoman.cli.terminal.narrator import Narrator, describe_tool
from dragoman.cli.terminal.screen import one_line
from dragoman.client.question import Option, Question
from dragoman.config.model import PolicyConfig, PolicyRule
from dragoman.gateway.json_types import JsonObject
from dragoman.gateway.session.open_tools import OpenTools
from dragoman.gateway.session.policy.verdict import choose_option
from dragoman.gateway.session.policy.verdict import decide as decide_by

Approve = Literal["all", "reads", "none"]

READS = PolicyRule(decision="allow", kind=["read", "search"])
POLICIES: dict[Approve, PolicyConfig] = {
    "all": PolicyConfig(rules=[PolicyRule(decision="allow")]),
    "reads": PolicyConfig(rules=[READS]),
    "none": PolicyConfig(),
}
"""A call is what its facts say: a "read" that carries a command is none."""
KEYS = {"allow_once": "y", "reject_once": "n"}
"""The key of an option, by its kind. Other options, and all that hold for longer than once, have a number, which needs
Enter: a single key pressed by mistake must not decide for good."""
KEY_WIDTH = 7
"""Columns for the keys of an option."""
_WISH = re.compile(
    r"(?P<scope>session|project|everywhere)(?:\s+(?P<until>\w+))?(?:\s*:\s*(?P<pattern>\S.*))?", re.IGNORECASE
)


def decide(approve: Approve, question: Question, calls: OpenTools) -> bool:
    """Answer by the rule of this run; returns whether it allowed the call. Denies of other rules came before."""
    rule = f"--approve {approve}"
    offered = question.raw.get("options")
    verdict = decide_by(POLICIES[approve], calls.filled(dict(question.tool)))
    option = choose_option("allow", offered) if verdict.decision == "allow" else None
    question.choose(option if option is not None else choose_option("deny", offered), rule=rule)
    return option is not None


def ask_person(
    question: Question,
    narrator: Narrator,
    keyboard: Keyboard,
    done: Callable[[], None],
) -> None:
    """Show the question with a key for every option; the key that the user presses answers it."""
    keys = option_keys(question.options)

    def entered(text: str) -> bool:
        wish = read_wish(text, question.remember)
        if wish is not None and question.open:
            question.choose("dragoman:once", remember=wish)
            settled(text.strip())
            return True
        option = keys.get(text.strip().lower())
        if option is None or not question.open:
            return False
        question.choose(option)
        settled(option.name or option.id)
        return True

    def pressed(key: str) -> bool:
        return not key.isdigit() and entered(key)

    def settled(how: str) -> None:
        keyboard.want_lines()
        narrator.screen.more(how, finished=True, bold=True)
        if keyboard.begun:
            narrator.screen.more(keyboard.begun)
        done()

    question.on_withdrawn(lambda: settled("answered elsewhere, or no longer asked"))
    narrator.ask(question)
    for line in [*option_lines(keys), *remember_lines(question.remember)]:
        narrator.say(line)
    keyboard.ask(pressed, entered, narrator.screen.echo)  # before the answer is asked for: keys then count
    narrator.screen.progress(f"  Answer: {keyboard.begun}", finished=False)


def read_wish(text: str, remember: JsonObject) -> JsonObject | None:
    """`project`, `everywhere today`, `session 1h: run make *`: what is to be remembered; None for any other line."""
    found = _WISH.fullmatch(text.strip())
    if found is None or not remember:
        return None
    wish: JsonObject = {"scope": found["scope"].lower()}
    if found["until"]:
        wish["until"] = found["until"].lower()
    if found["pattern"]:
        wish["pattern"] = [line.strip() for line in found["pattern"].split(";")]
    return wish


def remember_lines(remember: JsonObject) -> list[str]:
    """How to answer for longer than once, with the pattern that would be remembered."""
    pattern = remember.get("pattern")
    if not isinstance(pattern, list) or not pattern:
        return []
    shown = one_line("; ".join(map(str, pattern)))
    return [
        f"  {'longer':<{KEY_WIDTH}}  session, project or everywhere, also with 1h or today, and Enter",
        f"  {'':<{KEY_WIDTH}}  remembers: {shown}",
        f"  {'':<{KEY_WIDTH}}  project: run make *  (remembers that instead)",
    ]


def option_lines(keys: dict[str, Option]) -> list[str]:
    """One option per line, behind the keys that choose it."""
    return [
        f"  {key + ' Enter' if key.isdigit() else key:<{KEY_WIDTH}}  {one_line(option.name or option.id)}"
        for key, option in keys.items()
    ]


def option_keys(options: Sequence[Option]) -> dict[str, Option]:
    keys: dict[str, Option] = {}
    for number, option in enumerate(options, 1):
        key = KEYS.get(option.kind, str(number))
        keys[key if key not in keys else str(number)] = option
    return keys


def refusal(question: Question, approve: Approve, calls: OpenTools) -> str:
    """The note about a question that the rule refused, with the rule that would allow it."""
    tool = dict(question.tool)
    is_read = decide_by(POLICIES["reads"], calls.filled(tool)).decision == "allow"
    reads = " or reads" if approve == "none" and is_read else ""
    hint = "" if approve == "all" else f"; --approve all{reads} allows it"
    return f"refused: {describe_tool(tool)} (--approve {approve}{hint})"
