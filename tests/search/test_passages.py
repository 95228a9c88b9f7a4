"""What is searched of a journal: messages as a whole, tool calls once, nothing that controls a terminal."""

from __future__ import annotations

from dragoman.search.passages import PASSAGE, Collector, Passage

from .conftest import event, said


def collect(*events: bytes) -> list[Passage]:
    collector = Collector()
    for number, each in enumerate(events, 1):
        collector.event(number, 1000, each)
    collector.close()
    return collector.taken()


def test_chunks_of_one_message_are_one_text_that_knows_its_events() -> None:
    [passage] = collect(said("connec"), said("tion re"), said("fused"))
    assert passage.text == "connection refused"
    assert passage.marks == ((0, 1), (6, 2), (13, 3))


def test_people_agents_and_thoughts_are_told_apart() -> None:
    found = collect(
        said("please", "user_message_chunk", "P"),
        said("hm", "agent_thought_chunk"),
        said("yes", messageId="1"),
        said("and no", messageId="2"),
    )
    assert [(each.who, each.text.strip()) for each in found] == [
        ("user", "please"),
        ("thought", "hm"),
        ("agent", "yes"),
        ("agent", "and no"),
    ]


def test_a_tool_call_is_searched_once_with_its_last_content() -> None:
    content = [{"type": "content", "content": {"type": "text", "text": "12 passed"}}]
    diff = [{"type": "diff", "path": "/a/b.py", "oldText": None, "newText": "def f(): ..."}]
    found = collect(
        event({"sessionUpdate": "tool_call", "toolCallId": "1", "title": "pytest", "content": content[:0]}),
        event({"sessionUpdate": "tool_call_update", "toolCallId": "1", "content": content}),
        event({"sessionUpdate": "tool_call_update", "toolCallId": "1", "content": content}),
        event({"sessionUpdate": "tool_call", "toolCallId": "2", "title": "Edit", "content": diff}),
    )
    assert [each.text for each in found] == ["pytest\n12 passed", "Edit\n/a/b.py\ndef f(): ..."]
    assert found[0].marks == ((0, 1), (7, 3))


def test_a_long_message_is_cut_between_words_and_no_phrase_is_lost() -> None:
    text = " ".join(f"word{number}" for number in range(5000))
    found = collect(*(said(text[start : start + 50]) for start in range(0, len(text), 50)))
    assert len(found) > 3
    assert all(len(each.text) <= PASSAGE for each in found)
    for number in range(4999):
        phrase = f"word{number} word{number + 1}"
        assert any(phrase in each.text for each in found), phrase
    last = found[-1]
    offset, seq = last.marks[-1]
    assert last.text[offset:] == text[(seq - 1) * 50 : seq * 50]


def test_hostile_text_and_foreign_lines_do_no_harm() -> None:
    [passage] = collect(
        b"U not json",
        b'U{"params": 3}',
        b"",
        b"R{}",
        said("a\x1b]52;c;eHg=\x07b\x00c\u202e\u200bd\x02"),
        said("\ud800"),
    )
    assert passage.text == "a]52;c;eHg=bcd"
    assert collect(said("\x1b \n")) == []
