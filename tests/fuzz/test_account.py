"""What `make soak` and `make kills` count, and for which revision."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from fuzz import account, soak, worker
from fuzz.account import Account, State, revision
from fuzz.worker import Result


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "code.py").write_text("1\n")
    (tmp_path / "guide.md").write_text("1\n")
    git(tmp_path, "init", "--quiet")
    commit(tmp_path)
    return tmp_path


def git(folder: Path, *words: str) -> str:
    who = ["-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false"]
    command = ["git", *who, *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout.strip()


def commit(folder: Path) -> str:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "change")
    return git(folder, "rev-parse", "--short=12", "HEAD")


def test_the_revision_is_that_of_the_code_and_not_of_the_documentation(repository: Path) -> None:
    first = revision(repository)
    assert first == git(repository, "rev-parse", "--short=12", "HEAD")
    (repository / "guide.md").write_text("2\n")
    assert revision(repository) == first
    commit(repository)
    assert revision(repository) == first
    (repository / "requirements").mkdir()
    (repository / "requirements" / "dev.lock").write_text("1\n")
    assert commit(repository) == revision(repository) != first


@pytest.mark.parametrize("changed", ["src/code.py", "src/new.py", "pyproject.toml"])
def test_code_that_is_not_committed_marks_the_revision(repository: Path, changed: str) -> None:
    first = revision(repository)
    (repository / changed).write_text("2\n")
    assert revision(repository) == f"{first}-dirty"


def test_counts_of_one_revision_add_up_over_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(account, "ROOT", tmp_path)
    monkeypatch.setattr(account, "revision", lambda: "abc")
    for _ in range(2):
        run = Account.of_revision()
        run.add(run.state.parsers, "lines", Result(5, grown=2))
        run.add(run.state.parsers, "lines", Result(4, find="a line end in a frame"))
    state = Account.of_revision().state
    assert (state.parsers, state.most_grown, len(state.finds)) == ({"lines": 18}, 2, 2)


def test_only_what_is_missing_is_run() -> None:
    state = State()
    for job in soak.jobs(state, 1):
        job.counts[job.name] = job.wanted
    state.endpoints["unix"] -= 7
    assert soak.rounds_done(state) == 0
    assert [(job.name, job.missing) for job in soak.jobs(state, 1)] == [("unix", 7)]
    state.endpoints["unix"] += 7
    assert soak.rounds_done(state) == 1


async def test_a_worker_reports_as_it_goes_and_one_that_fails_is_a_find(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "TESTS", tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    (tmp_path / "failing.py").write_text(
        "from fuzz.worker import Reporter, Result\n"
        "report = Reporter()\n"
        "print('not a report')\n"
        "report(Result(5000))\n"
        "report(Result(5000, grown=3))\n"
        "raise ValueError('of an input')\n"
    )
    reports = [result async for result in worker.watch("failing", "name", 20_000, 1)]
    assert [(result.inputs, result.grown) for result in reports] == [(5000, 0), (5000, 3), (0, 0)]
    assert "not a report" in reports[2].find and "ValueError: of an input" in reports[2].find
