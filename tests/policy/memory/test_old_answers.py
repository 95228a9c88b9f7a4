"""Answers that the built-in agent stored itself become remembered ones, never wider than they were."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from pathlib import Path
from typing import Any

import pytest

from dragoman.policy.act import Act
from dragoman.policy.decide import Policy
from dragoman.policy.memory.file import Remembered
from dragoman.policy.memory.old_answers import convert_old_answers, has_old_answers
from dragoman.policy.requests.line import act_of_command
from dragoman.policy.requests.request import Surroundings, act_of_request


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "allowed"
    made.mkdir()
    return made


@pytest.fixture
def project(tmp_path: Path) -> Path:
    made = tmp_path / "project"
    (made / ".git").mkdir(parents=True)
    (made / "sub").mkdir()
    return made


def store(folder: Path, cwd: Path, *keys: str) -> Path:
    file = folder / f"{hashlib.sha256(os.fsencode(cwd)).hexdigest()[:32]}.json"
    file.write_text(json.dumps(keys))
    file.chmod(0o600)
    return file


def decision(kept: Remembered, act: Act) -> str:
    return Policy().decide(act, kept.rules(act)).decision


def of_line(line: str, project: Path, agent: str = "builtin") -> Act:
    return act_of_command(line, cwd=str(project), workspace=str(project), agent=agent)


def of_call(tool: dict[str, Any], project: Path) -> Act:
    around = Surroundings(agent="builtin", session="s", cwd=str(project), workspace=str(project))
    return act_of_request({"toolCallId": "c", **tool}, around)


def edit(path: Path) -> dict[str, Any]:
    return {"kind": "edit", "rawInput": {"path": str(path), "content": "x"}, "name": "write"}


def test_each_kind_of_answer_allows_what_it_did_and_nothing_else(folder: Path, project: Path) -> None:
    keys = ("run:git status", "run=make a; make b", f"write:{project}/sub", "fetch:docs.example")
    file = store(folder, project, *keys)
    kept = Remembered(None)
    convert_old_answers(folder, [str(project)], ["builtin"], kept)
    assert not file.exists() and not has_old_answers(folder) and list(folder.iterdir()) == []
    lines = ("git status --short", "git push", "make a; make b", "make c", "git status; rm -rf x")
    said = [decision(kept, of_line(line, project)) for line in lines]
    assert said == ["allow", "ask", "allow", "ask", "ask"]
    assert decision(kept, of_line("git status", project, agent="codex")) == "ask", "it was said to one agent"
    assert decision(kept, of_call(edit(project / "sub" / "deep" / "a.txt"), project)) == "allow"
    assert decision(kept, of_call(edit(project / "top.txt"), project)) == "ask"
    for host, expected in (("docs.example", "allow"), ("other.example", "ask")):
        fetch = {"kind": "fetch", "rawInput": {"url": f"https://{host}/x"}, "name": "fetch"}
        assert decision(kept, of_call(fetch, project)) == expected
    assert all("by builtin" in memory.words for memory in kept.all())


def test_what_cannot_be_converted_stays_unused_and_is_told_once(
    folder: Path, project: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    unknown = store(folder, tmp_path / "gone", "run:make")
    below = store(folder, project / "sub", "run:make")
    partly = store(
        folder, project, "run:make", "run=echo $(date)", "write:/etc", "fetch:*", "mcp:a:b:c", "odd"
    )
    kept = Remembered(None)
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            convert_old_answers(folder, [str(project), str(project / "sub")], ["builtin"], kept)
    assert {file.name for file in folder.iterdir()} == {
        f"{file.name}.unused" for file in (unknown, below, partly)
    }
    assert [memory.words for memory in kept.all()] == ["commands that begin with `make` by builtin"]
    (told,) = caplog.messages
    assert "3 files" in told and "asked again" in told


@pytest.mark.parametrize("content", ["{", '{"a": 1}', "[1]"])
def test_a_broken_file_or_one_that_others_may_write_allows_nothing(
    folder: Path, project: Path, content: str
) -> None:
    store(folder, project).write_text(content)
    store(folder, project / "sub", "run:make").chmod(0o666)
    kept = Remembered(None)
    convert_old_answers(folder, [str(project), str(project / "sub")], ["builtin"], kept)
    assert kept.all() == []
    assert len(list(folder.glob("*.unused"))) == 2
