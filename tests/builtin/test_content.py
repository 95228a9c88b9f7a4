"""What a prompt may contain, and what the project tells the model."""

from __future__ import annotations

import base64
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from dragoman.builtin.commands.custom import find_commands
from dragoman.builtin.instructions import project_files
from dragoman.config.errors import ConfigError
from dragoman.config.paths import Paths
from support.agents.builtin_process import Builtin, said
from support.agents.fake_llm import FakeLlm, text

InShape = Callable[[str], Awaitable[Builtin]]
PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()


async def test_every_kind_of_content_reaches_the_model(
    openai: Builtin, llm: FakeLlm, workspace: Path
) -> None:
    (workspace / "linked.txt").write_text("text of the linked file")
    llm.tell(text("Seen."))
    session = await openai.new_session(workspace)
    await openai.prompt(
        session,
        [
            {"type": "text", "text": "look at these"},
            {"type": "resource_link", "uri": (workspace / "linked.txt").as_uri(), "name": "linked.txt"},
            {"type": "resource_link", "uri": "https://example.org/page", "name": "a page"},
            {"type": "resource", "resource": {"uri": "file:///x.py", "text": "embedded text"}},
            {"type": "image", "data": PIXEL, "mimeType": "image/png"},
        ],
    )
    seen = str(llm.requests[-1]["messages"])
    for part in (
        "look at these",
        "text of the linked file",
        "https://example.org/page",
        "embedded text",
        PIXEL,
    ):
        assert part in seen


async def test_audio_reaches_a_model_that_takes_it(in_shape: InShape, llm: FakeLlm, workspace: Path) -> None:
    agent = await in_shape("google")
    llm.tell(text("Heard."))
    session = await agent.new_session(workspace)
    sound = base64.b64encode(b"RIFF0000WAVE").decode()
    turn = await agent.prompt(
        session,
        [{"type": "text", "text": "listen"}, {"type": "audio", "data": sound, "mimeType": "audio/wav"}],
    )
    assert said(turn) == "Heard."
    assert sound in "".join(llm.seen())


async def test_audio_for_a_model_that_takes_none_is_refused_clearly(
    in_shape: InShape, llm: FakeLlm, workspace: Path
) -> None:
    agent = await in_shape("anthropic")
    llm.tell(text("Read."))
    session = await agent.new_session(workspace)
    sound = {"type": "audio", "data": PIXEL, "mimeType": "audio/wav"}
    turn = await agent.prompt(session, [{"type": "text", "text": "listen"}, sound])
    assert "anthropic:fake cannot take audio/wav: the audio was left out." in said(turn)
    assert said(turn).endswith("Read.")


async def test_what_the_model_cannot_take_is_refused_clearly(
    openai: Builtin, llm: FakeLlm, workspace: Path
) -> None:
    llm.tell(text("Only text."))
    session = await openai.new_session(workspace)
    turn = await openai.prompt(
        session,
        [
            {"type": "text", "text": "listen"},
            {"type": "resource", "resource": {"uri": "x.zip", "blob": PIXEL, "mimeType": "application/zip"}},
        ],
    )
    assert "cannot take application/zip" in said(turn)
    assert said(turn).endswith("Only text.")


async def test_content_that_is_broken_is_an_error_of_the_prompt(
    openai: Builtin, llm: FakeLlm, workspace: Path
) -> None:
    session = await openai.new_session(workspace)
    turn = await openai.prompt(session, [{"type": "image", "data": "%%%", "mimeType": "image/png"}])
    assert turn.error is not None
    assert turn.error.code == -32602
    empty = await openai.prompt(session, [])
    assert empty.error is not None
    assert empty.error.code == -32602


async def test_the_project_speaks_to_the_model(openai: Builtin, llm: FakeLlm, workspace: Path) -> None:
    (workspace / ".git").mkdir()
    below = workspace / "below"
    (below / ".dragoman" / "commands").mkdir(parents=True)
    (workspace / "AGENTS.md").write_text("Use tabs.")
    (below / ".dragoman" / "instructions.md").write_text("Speak French.")
    review = "---\ndescription: Review a file\n---\nReview $ARGUMENTS with care."
    (below / ".dragoman" / "commands" / "review.md").write_text(review)
    llm.tell(text("Oui."))
    session = await openai.new_session(below)
    commands = await openai.next_message(lambda m: "availableCommands" in str(m))
    named = {each["name"]: each for each in commands["params"]["update"]["availableCommands"]}
    assert named["review"]["description"] == "Review a file"
    await openai.prompt(session, "/review a.py")
    seen = str(llm.requests[-1]["messages"])
    for part in ("Use tabs.", "Speak French.", "Review a.py with care."):
        assert part in seen


async def test_the_model_knows_what_commands_showed(openai: Builtin, llm: FakeLlm, workspace: Path) -> None:
    session = await openai.new_session(workspace)
    await openai.prompt(session, "/run echo the tests failed")
    llm.tell(text("I see."))
    await openai.prompt(session, "why?")
    assert "the tests failed" in str(llm.requests[-1]["messages"])


def test_without_a_home_the_users_own_files_are_left_out(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def homeless() -> Paths:
        raise ConfigError("there is no home directory")

    monkeypatch.setattr("dragoman.config.paths.find_paths", homeless)
    monkeypatch.setattr("dragoman.builtin.instructions.find_paths", homeless)
    (workspace / "AGENTS.md").write_text("Be kind.")
    assert [text for _, text in project_files(str(workspace))] == ["Be kind."]
    assert find_commands(str(workspace)) == {}


def test_a_link_out_of_the_project_tells_the_model_nothing(workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "id_rsa").write_text("PRIVATE KEY")
    (workspace / ".git").mkdir()
    (workspace / ".dragoman" / "commands").mkdir(parents=True)
    for place in ("AGENTS.md", ".dragoman/instructions.md", ".dragoman/commands/stolen.md"):
        (workspace / place).symlink_to(tmp_path / "id_rsa")
    assert list(project_files(str(workspace))) == []
    assert find_commands(str(workspace)) == {}


def test_a_link_inside_the_project_is_followed(workspace: Path) -> None:
    (workspace / ".git").mkdir()
    (workspace / "CLAUDE.md").write_text("Be kind.")
    (workspace / "AGENTS.md").symlink_to("CLAUDE.md")
    assert [text for _, text in project_files(str(workspace))] == ["Be kind."]


def test_pipes_and_devices_are_not_read(workspace: Path) -> None:
    (workspace / ".git").mkdir()
    (workspace / ".dragoman" / "commands").mkdir(parents=True)
    os.mkfifo(workspace / "AGENTS.md")
    (workspace / ".dragoman" / "instructions.md").symlink_to("/dev/zero")
    os.mkfifo(workspace / ".dragoman" / "commands" / "pipe.md")
    (workspace / ".dragoman" / "commands" / "fine.md").write_text("Do it.")
    assert list(project_files(str(workspace))) == []
    assert list(find_commands(str(workspace))) == ["fine"]
