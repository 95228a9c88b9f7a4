"""Remembered answers are found by what they are about; none that covers an act is missed."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from dragoman.policy.act import Act
from dragoman.policy.decide import Policy
from dragoman.policy.memory.file import Remembered
from dragoman.policy.memory.memory import Memory, memory_of
from dragoman.policy.memory.pattern import Pattern, patterns_of
from dragoman.policy.requests.line import act_of_command
from dragoman.policy.requests.request import Surroundings, act_of_request

NOW = datetime(2026, 11, 18, tzinfo=UTC)
ROOT = "/nowhere/p"


def line(text: str) -> Act:
    return act_of_command(text, cwd=ROOT, workspace=ROOT)


def call(**tool: Any) -> Act:
    around = Surroundings(agent="a", session="s", cwd=ROOT, workspace=ROOT)
    return act_of_request({"toolCallId": "c", **tool}, around)


def edit(name: str) -> Act:
    return call(kind="edit", name="write", rawInput={"path": f"{ROOT}/{name}", "content": "x"})


def fetch(host: str) -> Act:
    return call(kind="fetch", name="fetch", rawInput={"url": f"https://{host}/"})


def memory(act: Act, *patterns: Pattern) -> Memory:
    made = list(patterns) or patterns_of(act)
    assert made
    return memory_of(act, made, "project", None, call="", who="local", now=NOW)


ACTS = {
    "line": line("make test"),
    "two lines": line("make a && npm b"),
    "redirection": line("sort a.txt > b.txt"),
    "quoted program": line("'make' test"),
    "file": edit("a.txt"),
    "host": fetch("Docs.example"),
}
PATTERNS = {
    "program": (line("make test"), Pattern(command=[["make"]])),
    "choice": (line("make test"), Pattern(command=[[["npm", "make"], "test"]], exact=True)),
    "program by path": (line("/usr/bin/make test"), Pattern(command=[["/usr/bin/make"]])),
    "files below": (edit("src/a.txt"), Pattern(paths=["{workspace}/src/**"], access="write")),
    "hosts below": (fetch("a.docs.example"), Pattern(hosts=["*.docs.example"])),
}


@pytest.mark.parametrize("name", [*ACTS, *PATTERNS])
def test_an_answer_is_found_among_a_thousand_others_and_few_of_those_with_it(name: str) -> None:
    act, *patterns = PATTERNS.get(name, (ACTS.get(name, Act()),))
    kept = Remembered(None, lambda: NOW)
    others = [act for n in range(330) for act in (line(f"make t{n}"), edit(f"f{n}"), fetch(f"h{n}.example"))]
    kept._memories = {made.id: made for made in map(memory, others)}
    kept.add(memory(act, *patterns))
    rules = kept.rules(act)
    assert Policy().decide(act, rules).decision == "allow"
    assert len(rules) <= 3
    assert kept.rules(line("make other")) == [] or name in PATTERNS
