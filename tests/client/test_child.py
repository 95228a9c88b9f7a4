"""The client library with a gateway in a child process, and without async."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from client.conftest import Serving
from dragoman.client import CannotConnect, Question, Text, TurnEnded, connect
from dragoman.client import sync as blocking
from support.gateway_process import agent, toml, with_test_defaults


@pytest.fixture
def own_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    config = {"default_agent": "scripted", "agents": {"scripted": agent()}}
    (home / "config.toml").write_text(toml(with_test_defaults(config)))
    monkeypatch.setenv("DRAGOMAN_HOME", str(home))
    return home


async def test_without_a_serve_a_child_is_the_gateway_and_ends_with_the_connection(
    own_home: Path, workspace: Path
) -> None:
    async with connect() as gateway:
        session = await gateway.new(cwd=workspace)
        assert await session.prompt("from a child").text() == "from a child"
        children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
        assert any("dragoman" in Path(f"/proc/{pid}/cmdline").read_text() for pid in children)
    left = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    assert not [pid for pid in left if "acp" in Path(f"/proc/{pid}/cmdline").read_text().split("\0")]


async def test_a_child_that_cannot_start_says_why(own_home: Path) -> None:
    (own_home / "config.toml").write_text("default_agnet = 1\n")
    with pytest.raises(CannotConnect, match="default_agnet"):
        await connect("child")


def test_the_synchronous_face_has_the_same_words(at_home: Serving, workspace: Path) -> None:
    with blocking.connect("serve") as gateway:
        session = gateway.new("scripted", workspace)
        kinds = set()
        for event in session.prompt("hello\npermission"):
            kinds.add(type(event))
            if isinstance(event, Question):
                event.allow()
        assert {Text, Question, TurnEnded} <= kinds
        for event in session.prompt("sleep-until-cancel"):
            if isinstance(event, Text):
                session.cancel()
                break
        assert session.prompt("bye").text() == "bye"
        assert [info.id for info in gateway.sessions(workspace)] == [session.id]
        again = gateway.resume(session.id, after=0)
        first = next(iter(again.events()))
        assert isinstance(first, Text) and first.text == "hello"


def test_importing_it_imports_nothing_heavy() -> None:
    heavy = ("pydantic", "hypercorn", "h11", "click", "sqlite3", "httpx", "uvloop", "tree_sitter")
    code = f"import sys; import dragoman.client.sync; print(*(name for name in {heavy!r} if name in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.split() == []
