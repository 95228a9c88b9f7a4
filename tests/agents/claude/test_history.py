"""Claude's own transcripts, as its files are."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from dragoman.agents.claude.history import History
from dragoman.agents.native.earlier import Earlier
from dragoman.wire.errors import RpcError

ONE = "11111111-1111-4111-8111-111111111111"
TWO = "22222222-2222-4222-8222-222222222222"


def user(text: str, **members: Any) -> dict[str, Any]:
    return {"type": "user", "message": {"role": "user", "content": text}, **members}


def keep(home: Path, id: str, *records: dict[str, Any], cwd: str = "/w/my.app", age: float = 0) -> None:
    folder = home / "projects" / "-w-my-app"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{id}.jsonl"
    file.write_text("".join(json.dumps({"cwd": cwd, "sessionId": id, **record}) + "\n" for record in records))
    os.utime(file, (1_700_000_000 - age, 1_700_000_000 - age))


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History({"CLAUDE_CONFIG_DIR": str(tmp_path)})


def test_the_list_is_newest_first_with_the_first_words_as_title(history: History, tmp_path: Path) -> None:
    keep(tmp_path, ONE, user("<command-name>/x</command-name>"), user("Fix it\nplease"), age=60)
    keep(tmp_path, TWO, user("Later"))
    assert history.sessions("/w/my.app") == [
        {"sessionId": TWO, "cwd": "/w/my.app", "title": "Later", "updatedAt": "2023-11-14T22:13:20Z"},
        {"sessionId": ONE, "cwd": "/w/my.app", "title": "Fix it", "updatedAt": "2023-11-14T22:12:20Z"},
    ]
    assert len(history.sessions(None)) == 2


def test_a_title_that_came_later_counts_and_a_persons_own_most(history: History, tmp_path: Path) -> None:
    keep(tmp_path, ONE, user("Fix it"), {"type": "ai-title", "aiTitle": "A fix"}, user("more"))
    assert history.sessions(None)[0]["title"] == "A fix"
    keep(tmp_path, ONE, {"type": "custom-title", "customTitle": "Old"}, user("Fix it"),
         {"type": "custom-title", "customTitle": "Mine"}, {"type": "ai-title", "aiTitle": "A fix"})  # fmt: skip
    assert history.sessions(None)[0]["title"] == "Mine"


def test_folders_that_only_look_alike_are_not_mixed_up(history: History, tmp_path: Path) -> None:
    keep(tmp_path, ONE, user("Hello"), cwd="/w/my-app")
    assert history.sessions("/w/my.app") == []


def test_a_file_without_a_conversation_is_no_session(history: History, tmp_path: Path) -> None:
    keep(tmp_path, ONE, {"type": "queue-operation"})
    assert history.sessions(None) == []


def test_what_was_not_said_between_people_and_agent_is_not_replayed(history: History, tmp_path: Path) -> None:
    keep(tmp_path, ONE, user("Hello"), user("side", isSidechain=True), user("meta", isMeta=True),
         user("summary", isCompactSummary=True))  # fmt: skip
    updates = history.updates(ONE)
    assert updates is not None
    assert [each["content"]["text"] for each in updates] == ["Hello"]


@pytest.mark.parametrize("id", [TWO, "../../secret", "*", ""])
def test_an_unknown_id_is_nothing_and_never_a_path(history: History, tmp_path: Path, id: str) -> None:
    keep(tmp_path, ONE, user("Hello"))
    assert history.updates(id) is None


def said(id: str, before: str | None, kind: str, content: Any, **members: Any) -> dict[str, Any]:
    message = {"role": kind, "content": content}
    return {"type": kind, "uuid": id, "parentUuid": before, "message": message, **members}


def test_the_message_before_a_prompt_is_in_the_branch_that_goes_on(history: History, tmp_path: Path) -> None:
    keep(
        tmp_path,
        ONE,
        said("u1", None, "user", "one"),
        said("a1", "u1", "assistant", [{"type": "text", "text": "1"}]),
        said("x2", "a1", "user", "two"),
        said("y2", "x2", "assistant", [{"type": "text", "text": "left behind"}]),
        said("u2", "a1", "user", [{"type": "text", "text": "two"}]),
        said("m2", "u2", "user", "a note", isMeta=True),
        said("a2", "m2", "assistant", [{"type": "tool_use", "id": "t"}]),
        said("r2", "a2", "user", [{"type": "tool_result", "tool_use_id": "t"}]),
        said("s2", "r2", "assistant", [{"type": "text", "text": "aside"}], isSidechain=True),
        said("i2", "r2", "user", "[Request interrupted by user]"),
        said("u3", "i2", "user", "three"),
    )
    assert history.message_before(ONE, Earlier(1, "three")) == "a2"
    assert history.message_before(ONE, Earlier(2, "two")) == "a1"
    for wrong in (Earlier(3, "one"), Earlier(1, "left behind")):
        with pytest.raises(RpcError):
            history.message_before(ONE, wrong)
    with pytest.raises(RpcError):
        history.message_before(TWO, Earlier(1, "one"))
