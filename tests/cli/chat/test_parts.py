"""The parts of a chat that need no terminal: lines of events, menus, completion, what is sent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dragoman.cli.chat.commands.commands import COMMANDS, with_agent_commands
from dragoman.cli.chat.commands.options import choices_of, find_option
from dragoman.cli.chat.editor.completion import fuzzy
from dragoman.cli.chat.editor.content import blocks_of
from dragoman.cli.chat.editor.pastes import FOLD_LINES, Pastes
from dragoman.cli.chat.lines.markdown import CODE, Line, Markdown
from dragoman.cli.chat.lines.transcript import OUTPUT_LINES, Transcript
from dragoman.cli.chat.lines.wrapping import wrap
from dragoman.cli.chat.menu import GRACE, Choice, Menu
from dragoman.client import Event, Notice, Text, Thought, ToolStarted, ToolUpdated, TurnEnded, UserMessage
from dragoman.client.reading import read_update


def plain(lines: list[Line]) -> list[str]:
    return ["".join(text for _, text in line) for line in lines]


def told(*events: Event) -> tuple[list[str], list[str]]:
    """The finished lines and the tail after these events."""
    transcript = Transcript(clock=lambda: 0.0)
    for event in events:
        transcript.take(event)
    return plain(transcript.take_finished()), plain(transcript.tail(80))


def test_a_line_is_finished_when_it_ends_and_until_then_in_the_tail() -> None:
    assert told(Text("one\ntw")) == (["one"], ["tw"])
    assert told(Text("one\ntw"), Text("o"), TurnEnded("end_turn")) == (["one", "two"], [])


def test_no_line_is_finished_twice() -> None:
    transcript = Transcript()
    transcript.take(Text("a\nb\nc"))
    first = plain(transcript.take_finished())
    transcript.take(TurnEnded("end_turn"))
    assert first + plain(transcript.take_finished()) == ["a", "b", "c"]


def test_of_a_long_unfinished_line_the_end_is_shown() -> None:
    tail = told(Text("x" * 5000 + "end"))[1]
    assert tail[0].startswith("…x") and tail[0].endswith("end") and len(tail[0]) < 400


def test_thoughts_are_folded_into_one_line() -> None:
    assert told(Thought("first\nsecond")) == ([], ["· second"])
    assert told(Thought("first\nsecond"), Text("answer\n")) == (["· thought", "answer"], [])


def tool(**update: Any) -> Event:
    return read_update({"toolCallId": "t", **update}, None)


def test_a_tool_call_is_one_line_while_it_runs_and_its_output_comes_once() -> None:
    started = tool(sessionUpdate="tool_call", title="Run", status="in_progress")
    assert isinstance(started, ToolStarted)
    assert told(Text("so"), started) == (["so"], ["● Run …"])
    output = [{"type": "content", "content": {"type": "text", "text": "\n".join(map(str, range(50)))}}]
    ended = tool(sessionUpdate="tool_call_update", title="Run it", status="completed", content=output)
    assert isinstance(ended, ToolUpdated)
    finished, tail = told(started, ended, ended)
    assert finished[:2] == ["● Run it ✓", "  0"] and len(finished) == OUTPUT_LINES + 2
    assert finished[-1] == f"  … {50 - OUTPUT_LINES} more lines" and tail == []


def test_a_diff_that_a_question_showed_is_not_shown_again() -> None:
    diff = [{"type": "diff", "path": "/a", "oldText": "x", "newText": "y"}]
    transcript = Transcript()
    transcript.take(tool(sessionUpdate="tool_call", title="Edit", content=diff))
    transcript.asked("Edit", "t", ["-x", "+y"])
    transcript.take(tool(sessionUpdate="tool_call_update", status="completed"))
    assert plain(transcript.take_finished()) == ["? Edit", "  -x", "  +y", "● Edit ✓"]


def test_how_a_turn_ended_is_told_unless_it_ended_well() -> None:
    assert told(TurnEnded("cancelled")) == (["[cancelled]"], [])
    assert told(TurnEnded("error", "no model")) == (["! no model"], [])
    assert told(Notice("saved nothing", "error")) == (["! saved nothing"], [])


def test_prompts_of_an_earlier_conversation_are_marked() -> None:
    assert told(UserMessage("hello"), UserMessage(" you"), Text("hi\n"))[0] == ["> hello you", "", "hi"]


def test_what_an_agent_says_cannot_control_the_terminal() -> None:
    hostile = "a\x1b]0;title\x07b\u202ec\x9bd\te\n"
    events = [
        Text(hostile),
        Thought(hostile),
        tool(sessionUpdate="tool_call", title=hostile),
        Notice(hostile),
    ]
    finished, tail = told(*events)
    for line in (*finished, *tail):
        assert line.isprintable() or not line, repr(line)


def test_markdown_is_styled_line_by_line() -> None:
    markdown = Markdown()
    assert markdown.line("## Title") == [("bold underline", "Title")]
    assert markdown.line("a `b` **c**") == [("", "a "), ("ansicyan", "b"), ("", " "), ("bold", "c")]
    assert plain([markdown.line("- item")]) == ["• item"]
    assert [markdown.line(line)[0][0] for line in ("```py", "# no title", "```", "# x")] == [
        "ansibrightblack",
        "ansicyan",
        "ansibrightblack",
        "bold underline",
    ]


@pytest.mark.parametrize(
    ("opening", "end"),
    [("```", "```"), ("````md", "````"), ("~~~", "~~~"), ("- ```sh", "  ```"), ("1. ```", "   ```")],
)
def test_code_in_a_fence_is_shown_as_it_is(opening: str, end: str) -> None:
    markdown = Markdown()
    shown = [opening, "# Title", "- `item`", "**bold**", "```sh", end]
    assert plain([markdown.line(line) for line in shown]) == shown
    assert plain([markdown.line("# Title")]) == ["Title"]


def test_three_backticks_around_words_are_no_fence() -> None:
    markdown = Markdown()
    markdown.line("```code``` and more")
    assert markdown.line("# Title") == [("bold underline", "Title")]


def test_a_fence_that_events_leave_out_still_keeps_the_text_as_it_is() -> None:
    def chunk(text: str, **facts: Any) -> Event:
        content = {"type": "text", "text": text}
        update = {"sessionUpdate": "agent_message_chunk", "content": content, "_meta": {"dragoman": facts}}
        return read_update(update, None)

    block = chunk("```\n", fence=True), chunk("# Title\n"), chunk("```\n", fence=True)
    assert told(chunk("so"), *block, chunk("# End\n"))[0] == ["so", "```", "# Title", "```", "End"]


def test_lines_are_broken_at_spaces_and_indented_as_their_text() -> None:
    styled = [("", "run npm "), ("bold", "install"), ("", " -g it")]
    assert plain(wrap(styled, 12)) == ["run npm", "install -g", "it"]
    assert plain(wrap([("", "• one two three")], 10)) == ["• one two", "  three"]
    assert plain(wrap([("", "a "), ("", "x" * 12)], 5)) == ["a", "xxxxx", "xxxxx", "xx"]
    assert plain(wrap([("", "日本語日本語")], 5)) == ["日本", "語日", "本語"]
    assert plain(wrap([(CODE, "  npm install -g")], 12)) == ["  npm", "  install -g"]


def test_commands_of_an_agent_have_their_description_and_hint_and_ours_come_first() -> None:
    commands = [
        {"name": "read", "description": "show a\nfile", "input": {"hint": "PATH"}},
        {"name": "model", "description": "not ours"},
        {"name": "bare"},
    ]
    found = with_agent_commands({"availableCommands": commands})
    assert found == {**COMMANDS, "read": "show a file · PATH", "bare": "of the agent"}
    assert list(found)[: len(COMMANDS)] == list(COMMANDS)


def test_a_menu_that_the_user_asked_for_takes_keys_at_once() -> None:
    assert Menu([], [Choice("a")], lambda index: None, grace=0).ready
    assert not Menu([], [Choice("a")], lambda index: None).ready


def test_no_key_counts_within_the_grace_and_what_lasts_needs_enter() -> None:
    now, chosen = [0.0], list[int]()
    choices = [Choice("once"), Choice("always", lasting=True), Choice("no")]
    menu = Menu([], choices, chosen.append, clock=lambda: now[0])
    before, now[0] = menu.ready, GRACE
    assert (before, menu.ready) == (False, True)
    menu.digit(2)
    assert chosen == [] and "› 2 always" in plain(menu.lines())[1]
    menu.enter()
    menu.digit(3)
    menu.digit(9)
    assert chosen == [1, 2]


def test_the_arrows_mark_and_go_round() -> None:
    chosen: list[int] = []
    menu = Menu([], [Choice("a"), Choice("b")], chosen.append)
    menu.move(-1)
    menu.enter()
    menu.move(1)
    menu.enter()
    assert chosen == [1, 0]


@pytest.mark.parametrize(
    ("word", "found"),
    [("main", "src/main.py"), ("smp", "src/main.py"), ("READ", "README.md"), ("zz", None)],
)
def test_files_are_found_by_their_letters_in_order(word: str, found: str | None) -> None:
    names = ["src/domain/x.py", "src/main.py", "README.md"]
    assert next(iter(fuzzy(word, names)), None) == found


def test_large_pastes_are_a_mark_until_they_are_sent() -> None:
    pastes = Pastes()
    large = "line\n" * FOLD_LINES + "end"
    mark = pastes.fold(large)
    assert mark == "[paste 1: 11 lines]" and pastes.fold("short\ntext") == "short\ntext"
    assert pastes.unfold(f"see {mark}!") == f"see {large}!"


def test_files_are_sent_as_links(tmp_path: Path) -> None:
    (tmp_path / "a b.md").touch()
    (tmp_path / "x.py").touch()
    blocks = blocks_of("look at @x.py, @x.py and @nothing or me@x.py", tmp_path)
    assert [block["type"] for block in blocks] == ["text", "resource_link"]
    assert blocks[1]["uri"] == (tmp_path / "x.py").as_uri()


def test_options_are_found_by_category_and_groups_are_joined() -> None:
    option = {
        "id": "m",
        "category": "model",
        "options": [{"options": [{"value": "a", "name": "A"}]}, {"value": "b"}, {"value": 3}],
    }
    assert find_option([{"id": "mode"}, option], "model") is option
    assert choices_of(option) == [("a", "A"), ("b", "b")]
