"""Sessions that only an agent's own history has are found too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman.search import histories

from .conftest import Sessions, said

CLAUDE = "11111111-2222-4333-8444-555555555555"
CODEX = "019a0000-1111-7222-8333-444444444444"


def write(path: Path, *records: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records) + '{"torn')
    return path


def transcript(home: Path, text: str) -> Path:
    about = {"cwd": "/src/app", "sessionId": CLAUDE}
    answer = {"role": "assistant", "id": "m1", "content": [{"type": "text", "text": f"found the {text}"}]}
    return write(
        home / ".claude" / "projects" / "-src-app" / f"{CLAUDE}.jsonl",
        {
            **about,
            "type": "user",
            "timestamp": "2026-02-03T04:05:06.000Z",
            "message": {"role": "user", "content": "where?"},
        },
        {**about, "type": "assistant", "timestamp": "2026-02-03T04:05:07.000Z", "message": answer},
    )


@pytest.fixture
def home(sessions: Sessions, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = sessions.state.parent / "person"
    monkeypatch.setenv("HOME", str(folder))
    return folder


async def test_a_transcript_of_claude_code_is_searched(sessions: Sessions, home: Path) -> None:
    file = transcript(home, "needle")
    [hit] = sessions.find("needle")
    assert (hit.session_id, hit.agent, hit.cwd, hit.title) == (CLAUDE, "claude", "/src/app", "where?")
    assert (hit.by, hit.at, hit.only_agent) == ("agent", "2026-02-03T04:05:07.000Z", True)
    transcript(home, "nail")
    assert (len(sessions.find("nail")), sessions.find("needle")) == (1, []), "read again when it has changed"
    file.unlink()
    assert sessions.find("nail") == []


async def test_a_rollout_of_codex_is_searched(sessions: Sessions, home: Path) -> None:
    stamp = {"timestamp": "2026-02-03T04:05:06.000Z"}
    call = {
        "type": "function_call",
        "name": "shell",
        "arguments": '{"command":["rg","needle"]}',
        "call_id": "c1",
    }
    output = {"type": "function_call_output", "call_id": "c1", "output": "src/a.py: needle"}
    write(
        home / ".codex" / "sessions" / "2026" / "02" / "03" / f"rollout-2026-02-03T04-05-06-{CODEX}.jsonl",
        {**stamp, "type": "session_meta", "payload": {"id": CODEX, "cwd": "/src/app"}},
        {**stamp, "type": "event_msg", "payload": {"type": "user_message", "message": "find the needle"}},
        {**stamp, "type": "response_item", "payload": call},
        {**stamp, "type": "response_item", "payload": output},
        {**stamp, "type": "event_msg", "payload": {"type": "agent_message", "message": "in a haystack"}},
    )
    assert [(hit.session_id, hit.by) for hit in sessions.find("needle")] == [(CODEX, "tool"), (CODEX, "user")]
    assert sessions.find("haystack")[0].title == "find the needle"


async def test_a_session_with_a_journal_is_not_found_twice(sessions: Sessions, home: Path) -> None:
    transcript(home, "needle")
    await sessions.say("dgm_1", said("needle"), agent_session_id=CLAUDE)
    assert [hit.session_id for hit in sessions.find("needle")] == ["dgm_1"]


async def test_only_the_newest_of_bounded_size_are_read(
    sessions: Sessions,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    transcript(home, "needle")
    monkeypatch.setattr(histories, "LARGEST", 10)
    assert sessions.find("needle") == []
