"""Shows a conversation to the user as it happens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from dragoman.cli.terminal.approvals import approval_lines
from dragoman.cli.terminal.screen import Screen, one_line
from dragoman.client.question import Question
from dragoman.client.reading import chunk_text, text_of
from dragoman.gateway.json_types import JsonObject, as_object, own_meta
from dragoman.gateway.rewriting import tool_text
from dragoman.gateway.rewriting.tool_text import ToolContents, said_already

ENDS = {"completed": ("done", "green"), "failed": ("failed", "red")}
SEVERITY_COLOURS = {"error": "red", "warning": "yellow"}
OUTPUT_LINES = 20
"""Lines shown of a tool call's result."""
ASKED_LINES = 60
"""Lines shown with a question: the user has to see a diff to judge it."""
DIFF_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


class Narrator:
    """Shows the agent's messages, its thoughts (on a terminal only), and one line per tool call."""

    def __init__(self, screen: Screen, *, prompts: bool = False) -> None:
        """`prompts`: show the user's prompts, too."""
        self.screen = screen
        self._contents = ToolContents()
        self._asked: set[str] = set()  # calls whose content a question has shown
        self._prompts = prompts
        self._titles: dict[str, str] = {}
        self._seen: set[str] = set()
        self._ended: set[str] = set()
        self._after_tool = False  # what the agent says next is another message
        self._open = ""  # what the unfinished line is about: a tool call's id, or a kind of chunk
        self._tellers: dict[str, Callable[[JsonObject], None]] = {
            "agent_message_chunk": self._answer,
            "agent_thought_chunk": self._thought,
            "user_message_chunk": self._prompt,
            "tool_call": self._tool,
            "tool_call_update": self._tool,
            "plan": self._plan,
            "notice": self._notice,
        }

    def tell(self, update: JsonObject, *, reported: bool = False) -> None:
        """Show an update; `reported`: it is from the agent, so a user's message in it is the agent's account."""
        teller = self._tellers.get(str(update.get("sessionUpdate")))
        if reported and teller == self._prompt:
            self._prompt(update, reported=True)
        elif teller is not None:
            teller(update)

    def ask(self, question: Question) -> None:
        """Show a question; the caller handles the answer."""
        tool = dict(question.tool)
        if tool.get("title"):
            self._titles[str(tool.get("toolCallId"))] = one_line(str(tool["title"]))
        self._open = ""
        self._asked.add(str(tool.get("toolCallId")))
        self.screen.progress(f"? {describe_tool(tool, self._titles)}", fg="yellow", bold=True)
        self._show(list(question_lines(tool, self._contents)), ASKED_LINES)
        facts = own_meta(dict(question.raw))
        if why := as_object(facts.get("policy")).get("why"):
            self.screen.progress(f"  {one_line(str(why))}", dim=True)
        for line in approval_lines(as_object(facts.get("approval"))):
            self.screen.progress(f"  {line}", dim=True)

    def say(self, text: str, **style: Any) -> None:
        """Show text that is not part of the conversation."""
        self._open = ""
        self.screen.progress(text, **style)

    def turn_ended(self, facts: JsonObject) -> None:
        """Show how a turn ended, unless it is `end_turn`."""
        self._open = ""
        self.screen.end_line()
        reason, error = facts.get("stopReason"), facts.get("error")
        if isinstance(error, dict):
            self.screen.progress(f"! {error.get('message')}", fg="red")
        elif reason not in (None, "end_turn"):
            self.screen.progress(f"[{reason}]", dim=True)

    def _answer(self, update: JsonObject) -> None:
        if self._open != "answer" and (self.screen.shared or self._after_tool):
            self.screen.end_line()
        self._open, self._after_tool = "answer", False
        self.screen.answer(chunk_text(update))

    def _thought(self, update: JsonObject) -> None:
        if not self.screen.terminal:
            return
        text = text_of(update.get("content"))
        if self._open == "thought":
            self.screen.more(text, dim=True)
        else:
            self.screen.progress(text, finished=False, dim=True)
        self._open = "thought"

    def _prompt(self, update: JsonObject, *, reported: bool = False) -> None:
        if not self._prompts:
            return
        text = text_of(update.get("content"))
        kind = "reported prompt" if reported else "prompt"
        if self._open == kind:
            self.screen.more(text, bold=True)
        else:
            mark = "> (as the agent tells it)" if reported else ">"
            self.screen.progress(f"{mark} {text}", finished=False, bold=True)
        self._open = kind

    def _tool(self, update: JsonObject) -> None:
        self._after_tool = True
        call = str(update.get("toolCallId"))
        title = one_line(str(update.get("title") or self._titles.get(call) or "tool call"))
        first = call not in self._seen
        self._seen.add(call)
        self._titles[call] = title
        self._contents.see(update)
        end = ENDS.get(str(update.get("status")))
        if end is not None and call not in self._ended:
            self._ended.add(call)
            if self._open != f"tool {call}":
                self.screen.progress(f"● {title} …", finished=False)
            self.screen.more(" ")
            mark = " (unmediated)" if own_meta(update).get("unmediated") is True else ""
            self.screen.more(f"{end[0]}{mark}", finished=True, fg=end[1])
            self._open = ""
            content = self._contents.take(update)
            known = call in self._asked and not any(
                as_object(block).get("type") != "diff" for block in content
            )
            if not known and not said_already(update):
                self._show(list(tool_text.lines(content)), OUTPUT_LINES)
        elif first and self.screen.terminal:
            self.screen.progress(f"● {title} …", finished=False)
            self._open = f"tool {call}"

    def _show(self, lines: list[str], limit: int) -> None:
        for line in lines[:limit]:
            self.screen.progress(f"  {line}", **_line_style(line))
        if len(lines) > limit:
            more = len(lines) - limit
            self.screen.progress(f"  … {more} more line{'s' * (more > 1)}", dim=True)

    def _plan(self, update: JsonObject) -> None:
        entries = update.get("entries")
        if not self.screen.terminal or not isinstance(entries, list):
            return
        done = sum(isinstance(entry, dict) and entry.get("status") == "completed" for entry in entries)
        self.say(f"plan: {done} of {len(entries)} steps done", dim=True)

    def _notice(self, update: JsonObject) -> None:
        severity = str(update.get("severity"))
        self.say(f"! {update.get('title')}", fg=SEVERITY_COLOURS.get(severity))


def question_lines(tool: JsonObject, contents: ToolContents) -> Iterator[str]:
    """What exactly the user may allow: the command, if the title does not show all of it, and the diff."""
    command = as_object(tool.get("rawInput")).get("command")
    if isinstance(command, list):
        command = " ".join(map(str, command))
    if isinstance(command, str) and command not in one_line(str(tool.get("title"))):
        yield from (f"$ {command}").splitlines()
    yield from tool_text.lines(contents.of(tool))


def _line_style(line: str) -> dict[str, Any]:
    colour = DIFF_COLOURS.get(line[:1])
    return {"dim": True} if colour is None else {"fg": colour}


def describe_tool(tool: JsonObject, titles: dict[str, str] | None = None) -> str:
    """A tool call in a few words."""
    title = tool.get("title") or (titles or {}).get(str(tool.get("toolCallId"))) or "tool call"
    kind = tool.get("kind")
    return one_line(f"{title} ({kind})" if kind else str(title))
