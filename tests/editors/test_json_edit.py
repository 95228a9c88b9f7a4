"""Entries in JSON texts with comments: put in, replaced and taken out, and nothing else touched."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.editors.json_edit import Place, entries, put, take_out
from dragoman.editors.jsonc import MAX_CHARACTERS, MAX_DEPTH, JsoncError, parse

SERVERS = Place(("agent_servers",))
COMMANDS = Place(("commands",), "title")
ENTRY = {"command": "/bin/dragoman", "args": ["acp"]}

ZED = """// Zed settings
{
  "theme": "One Dark", // my theme
  /* fonts */
  "buffer_font_size": 15, // large
  // "vim_mode": true,
}
"""


def test_an_entry_goes_behind_the_last_member_and_its_comment() -> None:
    assert put(ZED, SERVERS, "D", {"command": "x"}) == ZED.replace(
        "// large\n",
        '// large\n  "agent_servers": {\n    "D": {\n      "command": "x"\n    }\n  },\n',
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '{\n  "agent_servers": {\n    "D": {\n      "a": 1\n    }\n  }\n}\n'),
        ("{}", '{\n  "agent_servers": {\n    "D": {\n      "a": 1\n    }\n  }\n}'),
        ('{"b": 2}', '{"b": 2, "agent_servers": {"D": {"a": 1}}}'),
        ('{"b": 2 /* two */ }', '{"b": 2, /* two */ "agent_servers": {"D": {"a": 1}} }'),
        ('{\n\t"b": 2\n}', '{\n\t"b": 2,\n\t"agent_servers": {\n\t\t"D": {\n\t\t\t"a": 1\n\t\t}\n\t}\n}'),
        (
            '{\r\n    "agent_servers": {},\r\n}',
            '{\r\n    "agent_servers": {\r\n        "D": {\r\n            "a": 1\r\n        }\r\n    },\r\n}',
        ),
        (
            '{\n  "agent_servers": {\n    "X": {}, // x\n  }\n}',
            '{\n  "agent_servers": {\n    "X": {}, // x\n    "D": {\n      "a": 1\n    },\n  }\n}',
        ),
        ('{"agent_servers": {"D": 5, "X": {}}}', '{"agent_servers": {"D": {\n  "a": 1\n}, "X": {}}}'),
    ],
)
def test_the_style_of_the_text_is_kept(before: str, after: str) -> None:
    assert put(before, SERVERS, "D", {"a": 1}) == after
    assert put(after, SERVERS, "D", {"a": 1}) == after


@pytest.mark.parametrize(
    "text",
    [
        ZED,
        '{"b": 2}',
        '{"b": 2 /* two */ }',
        '{"": null/* a *//* b */}',
        '\ufeff{\r\n\t"b": [1, 2,], // b\r\n}\r\n',
        '{\n  "agent_servers": {\n    "X": {} // x\n  }\n}',
        '{\n  "agent_servers": {\n    "X": {}, // x\n    // y\n  },\n  "z": 1}',
        "{}",
    ],
)
def test_taking_out_what_was_put_in_gives_the_text_before(text: str) -> None:
    with_entry = put(text, SERVERS, "D", ENTRY)
    assert entries(with_entry, SERVERS)["D"] == ENTRY
    assert take_out(with_entry, SERVERS, "D") == text
    assert take_out(text, SERVERS, "D") == text


def test_an_entry_in_the_middle_is_taken_out_alone() -> None:
    text = '{"agent_servers": {\n  // one\n  "A": 1,\n  // two\n  "D": 2,\n  // three\n  "C": 3\n}}'
    assert take_out(text, SERVERS, "D") == text.replace('\n  "D": 2,', "")
    assert take_out(text, SERVERS, "A") == text.replace('\n  "A": 1,', "")
    assert take_out(text, SERVERS, "C") == text.replace('"D": 2,', '"D": 2').replace('\n  "C": 3', "")


def test_a_line_comment_keeps_its_end() -> None:
    text = '{"agent_servers": {"A": 1, // one\n"D": 2}}'
    assert entries(take_out(text, SERVERS, "D"), SERVERS) == {"A": 1}


def test_entries_of_an_array_are_known_by_a_field() -> None:
    text = '{\n  // agents\n  "commands": [\n    {"title": "Kiro", "cmd": "kiro"}\n  ]\n}\n'
    added = put(text, COMMANDS, "D", {"title": "D", "cmd": "x"})
    assert parse(added).value["commands"] == [  # type: ignore[union-attr]
        {"title": "Kiro", "cmd": "kiro"},
        {"title": "D", "cmd": "x"},
    ]
    changed = put(added, COMMANDS, "D", {"title": "D", "cmd": "y"})
    assert entries(changed, COMMANDS)["D"]["cmd"] == "y"
    assert take_out(added, COMMANDS, "D") == text
    empty = '{"commands": []}'
    assert take_out(put(empty, COMMANDS, "D", {"title": "D"}), COMMANDS, "D") == empty


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ('{\n  "a": 1\n  "b": 2\n}', "line 3, column 3"),
        ('{\n  "a": }', "line 2, column 8"),
        ('{"a": 1', "line 1, column 8"),
        ('{"a": "x\n"}', "line 1, column 7"),
        ("{} {}", "line 1, column 4"),
        ("/* never", "line 1, column 1"),
        ("{'a': 1}", "line 1, column 2"),
        ('{"agent_servers": []}', "line 1, column 19"),
        ('{"agent_servers": {}, "agent_servers": {}}', "line 1, column 23"),
        ('{"agent_servers": {"D": 1, "D": 2}}', "line 1, column 28"),
        ("[]", "line 1, column 1"),
        ("[" * (MAX_DEPTH + 2), f"line 1, column {MAX_DEPTH + 1}"),
        ('"' + "x" * MAX_CHARACTERS + '"', "characters"),
    ],
)
def test_a_broken_text_is_refused_with_its_place(text: str, where: str) -> None:
    with pytest.raises(JsoncError, match=where):
        put(text, SERVERS, "D", ENTRY)


keys = st.text(max_size=5)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=12,
)
trivia = st.lists(
    st.sampled_from([" ", "\n", "\r\n", "\t", "  ", "// note\n", "/* note */", "// , } ]\r\n", "/* \n * */"]),
    max_size=3,
).map("".join)


@st.composite
def written(draw: st.DrawFn, value: Any) -> str:
    """The value as text, with blanks, comments and trailing commas wherever they may stand."""

    def gap() -> str:
        return draw(trivia)

    if not isinstance(value, dict | list) or not value:
        return json.dumps(value, ensure_ascii=draw(st.booleans()))
    members = []
    for part in value:
        key = f"{json.dumps(part)}{gap()}:{gap()}" if isinstance(value, dict) else ""
        shown = draw(written(value[part] if isinstance(value, dict) else part))
        members.append(gap() + key + shown + gap())
    trailing = draw(st.sampled_from(["", ","])) + gap()
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return opening + ",".join(members) + trailing + closing


@st.composite
def texts(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    root = draw(st.dictionaries(keys, values, max_size=4))
    root.pop("agent_servers", None)
    if draw(st.booleans()):
        root["agent_servers"] = draw(st.dictionaries(keys.filter(lambda key: key != "D"), values, max_size=3))
    around = draw(st.sampled_from(["", "\ufeff"]))
    return around + draw(trivia) + draw(written(root)) + draw(trivia), root


def is_within(shorter: str, longer: str) -> bool:
    """Whether `longer` has all characters of `shorter`, in their order."""
    rest = iter(longer)
    return all(character in rest for character in shorter)


@settings(max_examples=60, deadline=None)
@given(texts())
def test_only_the_entry_is_added_to_any_text(given_text: tuple[str, dict[str, Any]]) -> None:
    text, root = given_text
    after = put(text, SERVERS, "D", ENTRY)
    expected = {**root, "agent_servers": {**root.get("agent_servers", {}), "D": ENTRY}}
    found = parse(after)
    assert found is not None and found.value == expected
    assert is_within(text, after)
    assert put(after, SERVERS, "D", ENTRY) == after
    again = take_out(after, SERVERS, "D")
    if root.get("agent_servers") == {}:
        expected = {key: value for key, value in root.items() if key != "agent_servers"}
        found = parse(again)
        assert found is not None and found.value == expected
    else:
        assert again == text


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=40) | texts().map(lambda pair: pair[0][:-1]))
def test_any_other_text_is_an_error_and_nothing_worse(text: str) -> None:
    try:
        after = put(text, SERVERS, "D", ENTRY)
    except JsoncError:
        return
    assert entries(after, SERVERS)["D"] == ENTRY
