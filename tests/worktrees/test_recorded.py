"""What is done with worktrees is recorded once, before it is done; what cannot be recorded is not done."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman.audit.log import AuditLog
from dragoman.config.audit_model import AuditConfig
from dragoman.config.sections.worktrees import WorktreesConfig
from dragoman.gateway.ports.acts import NotRecorded, failed
from dragoman.gateway.ports.worktrees import WorktreeError, WorktreeWish
from dragoman.worktrees.engine import Engine

from .conftest import Checkout

BRANCH = "refs/heads/dragoman/one"


class Recorder:
    """Implements `Acting`; looks at the repository when an act is recorded."""

    def __init__(self, repository: Checkout) -> None:
        self.repository = repository
        self.refusing = False
        self.acts: list[tuple[str, dict[str, Any], str]] = []
        """Kind, facts, and the repository's references then."""
        self.secrets: list[str] = []

    @contextmanager
    def __call__(self, kind: str, facts: dict[str, Any], secrets: Iterable[str] = ()) -> Iterator[None]:
        if self.refusing:
            raise NotRecorded("The disk is full.")
        self.acts.append((kind, facts, self.repository.git("show-ref")))
        self.secrets += secrets
        try:
            yield
        except Exception as error:
            self.acts.append(("act_failed", failed(kind, facts, error), ""))
            raise

    def take(self) -> list[tuple[str, dict[str, Any], str]]:
        acts, self.acts = self.acts, []
        return acts


@pytest.fixture
def recorder(repository: Checkout) -> Recorder:
    return Recorder(repository)


@pytest.fixture
def engine(recorder: Recorder, tmp_path: Path) -> Engine:
    return Engine(tmp_path / "state" / "worktrees", recorder)


def make(engine: Engine, repository: Checkout, setup: list[str] | None = None) -> Checkout:
    root, settings = str(repository.folder), WorktreesConfig(setup=setup or [])
    wish = WorktreeWish(name="one", setup=True)
    return Checkout(Path(engine.create("dgm_s", root, root, wish, settings, box=None, by="kim").folder))


def test_making_one_and_its_commands(engine: Engine, recorder: Recorder, repository: Checkout) -> None:
    make(engine, repository, ["TOKEN=hushhush touch done"])
    (made, facts, before), (setup, ran, _) = recorder.take()
    assert (made, setup) == ("worktree_made", "worktree_setup")
    assert BRANCH not in before
    told = {name: facts[name] for name in ("session", "worktree", "branch", "repository", "by")}
    assert told == {
        "session": "dgm_s",
        "worktree": "one",
        "branch": "dragoman/one",
        "repository": str(repository.folder),
        "by": "kim",
    }
    assert facts["commit"] == repository.git("rev-parse", "HEAD")
    assert (ran["commands"], set(recorder.secrets)) == (["TOKEN=*** touch done"], {"hushhush"})


def test_a_command_that_fails(engine: Engine, recorder: Recorder, repository: Checkout) -> None:
    with pytest.raises(WorktreeError, match="exit code 3"):
        make(engine, repository, ["exit 3"])
    kinds = [(kind, facts.get("act")) for kind, facts, _ in recorder.take()]
    assert kinds == [
        ("worktree_made", None),
        ("worktree_setup", None),
        ("act_failed", "worktree_setup"),
        ("act_failed", "worktree_made"),
    ]


def test_a_command_that_fails_leaves_no_value_of_its_variables(repository: Checkout, tmp_path: Path) -> None:
    folder = tmp_path / "audit"
    log = AuditLog(folder, AuditConfig())

    @contextmanager
    def acting(kind: str, facts: dict[str, Any], secrets: Iterable[str] = ()) -> Iterator[None]:
        log.record(kind, facts, secrets)
        try:
            yield
        except Exception as error:
            log.record("act_failed", failed(kind, facts, error), secrets)
            raise

    engine = Engine(tmp_path / "state" / "worktrees", acting)
    with pytest.raises(WorktreeError, match="exit code 3"):
        make(engine, repository, ["x=hushhush sh -c 'echo $x; exit 3'"])
    log.close()
    kept = b"".join(path.read_bytes() for path in folder.rglob("*.ndjson"))
    assert kept.count(b"act_failed") == 2
    assert b"hushhush" not in kept


def test_a_merge(engine: Engine, recorder: Recorder, repository: Checkout) -> None:
    tree = make(engine, repository)
    tip, head = tree.commit("Add c", c="c\n"), repository.git("rev-parse", "HEAD")
    recorder.take()
    engine.merge("one", None, None, None, "kim")
    ((kind, facts, before),) = recorder.take()
    assert (kind, facts["commit"], facts["into"], facts["by"]) == ("worktree_merged", tip, "main", "kim")
    assert f"{head} refs/heads/main" in before


def test_a_merge_that_conflicts(engine: Engine, recorder: Recorder, repository: Checkout) -> None:
    make(engine, repository).commit("theirs", a="theirs\n")
    repository.commit("ours", a="ours\n")
    recorder.take()
    with pytest.raises(WorktreeError, match="same lines"):
        engine.merge("one", None, None, None)
    (_, (kind, facts, _)) = recorder.take()
    assert (kind, facts["act"], facts["worktree"]) == ("act_failed", "worktree_merged", "one")
    assert "same lines" in facts["why"]


def test_a_rebase(engine: Engine, recorder: Recorder, repository: Checkout) -> None:
    tip = make(engine, repository).commit("Add c", c="c\n")
    repository.commit("meanwhile", b="other\n")
    recorder.take()
    engine.rebase("one", None, "kim")
    ((kind, facts, before),) = recorder.take()
    assert (kind, facts["commit"], facts["onto"], facts["by"]) == ("worktree_rebased", tip, "main", "kim")
    assert f"{tip} {BRANCH}" in before


@pytest.mark.parametrize("way", ["discarded", "clean", "session deleted"])
def test_removing_one(way: str, engine: Engine, recorder: Recorder, repository: Checkout) -> None:
    tree = make(engine, repository)
    if way == "discarded":
        (tree.folder / "c").write_text("c\n")
    recorder.take()
    if way == "discarded":
        engine.discard("one", None, "kim", force=True)
    elif way == "clean":
        engine.clean([], "kim", stored=["dgm_s"])
    else:
        engine.session_deleted("dgm_s", "kim")
    ((kind, facts, before),) = recorder.take()
    assert (kind, facts["why"], facts["by"]) == ("worktree_discarded", way, "kim")
    assert facts["loses"] == ("1 file not committed" if way == "discarded" else "")
    assert BRANCH in before
    assert not tree.folder.exists()


def test_what_cannot_be_recorded_is_not_done(
    engine: Engine, recorder: Recorder, repository: Checkout
) -> None:
    tree = make(engine, repository)
    tree.commit("Add c", c="c\n")
    references = repository.git("show-ref")
    recorder.refusing = True
    for act in (
        lambda: engine.merge("one", None, None, None),
        lambda: engine.rebase("one", None),
        lambda: engine.discard("one", None, force=True),
        lambda: engine.session_deleted("dgm_s", discard=True),
    ):
        with pytest.raises(WorktreeError, match="disk is full"):
            act()
    root, wish = str(repository.folder), WorktreeWish(name="two")
    with pytest.raises(WorktreeError, match="disk is full"):
        engine.create("dgm_t", root, root, wish, WorktreesConfig(), box=None)
    assert repository.git("show-ref") == references
    assert tree.folder.exists()
