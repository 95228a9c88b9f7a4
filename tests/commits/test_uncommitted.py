"""What is not committed is what plain git shows, and looking at it runs nothing of the repository."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dragoman.commits.engine import Engine
from dragoman.config.sections.checkpoints import CheckpointsConfig
from dragoman.gateway.ports.commits import CommitError
from support.commits.repository import Repository

LONG = "".join(f"line {number}\n" for number in range(60))


def full(repository: Repository) -> None:
    """A commit, then a change of every kind."""
    for name in ("edited", "renamed", "gone", "staged", "both", "emptied", "src/deep/file"):
        repository.write(name, LONG.replace("line", name))
    repository.write("binary", bytes(range(256)))
    repository.write("mode", "#!/bin/sh\n")
    repository.write("to a link", "target")
    repository.write("new\nline \u202egnp", "1\n")
    repository.write(b"latin\xe9", "1\n")
    repository.write(".gitignore", "*.log\n")
    repository.write("kept.log", "1\n")
    repository.git("add", "-f", "kept.log")
    repository.commit()
    repository.write("edited", LONG.replace("line", "edited").replace("edited 3\n", ""))
    (repository.folder / "renamed").rename(repository.folder / "moved")
    (repository.folder / "gone").unlink()
    repository.write("staged", "new\n")
    repository.git("add", "staged")
    repository.write("both", "staged\n")
    repository.git("add", "both")
    repository.write("both", "staged, then changed\n")
    repository.write("emptied", "")
    repository.write("binary", bytes(range(255)) + b"\0\0")
    (repository.folder / "mode").chmod(0o755)
    (repository.folder / "to a link").unlink()
    (repository.folder / "to a link").symlink_to("/etc/passwd")
    repository.write("new\nline \u202egnp", "2\n")
    repository.write(b"latin\xe9", "2\n")
    repository.write("kept.log", "2\n")
    repository.write("untracked", "no end")
    repository.write("folder/untracked\t\x1b[31m", "1\n")
    repository.write("ignored.log", "1\n")
    repository.write("intended", "1\n")
    repository.git("add", "-N", "intended")
    repository.git("rm", "-q", "--cached", "src/deep/file")


def test_it_is_the_diff_of_git_to_the_byte(repository: Repository) -> None:
    full(repository)
    status = repository.git("status", "--porcelain")
    assert repository.patch() == repository.plain_diff()
    found = repository.paths()
    assert found["moved"] == "renamed" and found["gone"] == "deleted" and found["to a link"] == "type_changed"
    assert found["untracked"] == found["intended"] == "added"
    assert "ignored.log" not in found and "src/deep/file" not in found and "latin\\xe9" in found
    told = repository.engine.uncommitted(str(repository.folder))
    assert (told.branch, told.head) == ("main", repository.git("rev-parse", "HEAD"))
    assert repository.git("status", "--porcelain") == status


def test_nothing_is_written_to_the_repository(repository: Repository) -> None:
    full(repository)

    def files() -> dict[str, bytes]:
        found = (repository.folder / ".git").rglob("*")
        return {str(path): path.read_bytes() for path in found if path.is_file()}

    before = files()
    repository.patch()
    assert files() == before


@pytest.mark.parametrize(
    ("attributes", "settings"),
    [
        ("* text=auto\n", {}),
        ("*.txt eol=crlf\n*.raw -text\n", {}),
        ("*.txt text\n*.txt ident\n", {}),
        ("", {"core.autocrlf": "true"}),
        ("", {"core.autocrlf": "input"}),
        ("*.txt working-tree-encoding=UTF-16LE\n", {}),
        ("*.txt -diff\n", {}),
        ("", {"core.filemode": "false"}),
    ],
)
def test_what_git_converts_is_converted(
    repository: Repository, attributes: str, settings: dict[str, str]
) -> None:
    repository.write("crlf in git.txt", "a\r\nb\r\n")
    repository.write("lf.txt", "a\nb\n")
    repository.write("x.raw", "a\r\nb\r\n")
    repository.commit()
    for key, value in settings.items():
        repository.git("config", key, value)
    repository.write("sub/.gitattributes", attributes)
    repository.write(".gitattributes", attributes)
    text = "a\r\n$Id$\r\nc\r\n"
    encoded = text.encode("utf-16-le") if "UTF-16" in attributes else text.encode()
    for name in ("crlf in git.txt", "lf.txt", "x.raw", "new.txt", "sub/new.txt"):
        repository.write(name, encoded).chmod(0o755)
    assert repository.patch() == repository.plain_diff()


def test_a_repository_without_a_commit_has_only_new_files(repository: Repository) -> None:
    repository.write("a", "1\n")
    repository.write("b", "1\n")
    repository.git("add", "b")
    assert repository.patch() == repository.plain_diff()
    told = repository.engine.uncommitted(str(repository.folder))
    assert (told.head, told.branch, [file.path for file in told.files]) == ("", "main", ["a", "b"])


def test_a_detached_head_has_no_branch(repository: Repository) -> None:
    repository.commit(a="1\n")
    repository.git("checkout", "-q", "--detach")
    repository.write("a", "2\n")
    told = repository.engine.uncommitted(str(repository.folder))
    assert (told.branch, [file.path for file in told.files]) == ("", ["a"])
    assert repository.patch() == repository.plain_diff()


def test_a_linked_worktree_is_compared_with_its_own_head(repository: Repository, tmp_path: Path) -> None:
    repository.commit(a="1\n")
    repository.git("worktree", "add", "-q", "-b", "other", str(tmp_path / "linked"))
    linked = Repository(tmp_path / "linked", repository.home)
    linked.commit("second", b="1\n")
    linked.write("a", "2\n")
    told = linked.engine.uncommitted(str(linked.folder))
    assert (told.branch, [file.path for file in told.files]) == ("other", ["a"])


def test_submodules_are_compared_by_their_commits(repository: Repository, tmp_path: Path) -> None:
    inner = Repository.make(tmp_path / "inner", repository.home)
    inner.commit(g="1\n")
    repository.commit(a="1\n")
    repository.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner.folder), "sub")
    repository.commit("sub")
    sub = Repository(repository.folder / "sub", repository.home)
    mark = tmp_path / "ran"
    sub.write("g", "dirty\n")
    assert repository.paths() == {}
    sub.commit("second", g="2\n")
    sub.git("config", "core.fsmonitor", f"touch {mark}; true")
    sub.write("g", "dirty\n")
    (change,) = repository.engine.uncommitted(str(repository.folder)).files
    assert (change.path, change.status, change.submodule) == ("sub", "modified", True)
    patch = repository.patch()
    assert not mark.exists()
    sub.git("config", "--unset", "core.fsmonitor")
    assert patch == repository.plain_diff()
    (repository.folder / "nested").mkdir()
    Repository(repository.folder / "nested", repository.home).git("init", "-q")
    told = repository.engine.uncommitted(str(repository.folder))
    assert [(left.path, left.reason) for left in told.left_out] == [("nested/", "repository")]


def test_files_in_conflict_are_shown_as_they_are(repository: Repository) -> None:
    repository.commit(a="1\n")
    repository.git("checkout", "-q", "-b", "other")
    repository.commit("other", a="2\n")
    repository.git("checkout", "-q", "main")
    repository.commit("mine", a="3\n")
    with pytest.raises(AssertionError):
        repository.git("merge", "-q", "other")
    assert repository.paths() == {"a": "modified"}
    assert repository.patch() == repository.plain_diff()


def test_a_hostile_repository_runs_nothing(repository: Repository, tmp_path: Path) -> None:
    repository.commit(a="1\n", b="1\n")
    repository.write(".gitattributes", "a filter=x diff=x merge=x\n* diff=x\n")
    repository.write("a", "2\n")
    repository.write("b", "2\n")
    repository.write("c", "new\n")
    mark = tmp_path / "ran"
    repository.arm(mark)
    told = repository.engine.uncommitted(str(repository.folder))
    assert {file.path for file in told.files} == {".gitattributes", "b", "c"}
    assert [(left.path, left.reason) for left in told.left_out] == [("a", "filter")]
    assert b"+new" in repository.patch()
    assert not mark.exists()


def test_a_folder_that_became_a_symlink_is_not_followed(repository: Repository, tmp_path: Path) -> None:
    repository.write("d/a", "1\n")
    repository.commit()
    (repository.folder / "d" / "a").unlink()
    (repository.folder / "d").rmdir()
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a").write_text("secret\n")
    (repository.folder / "d").symlink_to(outside)
    patch = repository.patch()
    assert b"secret" not in patch
    assert patch == repository.plain_diff()


def test_what_is_too_large_is_named(repository: Repository) -> None:
    repository.commit(a="1\n")
    with repository.write("large", "").open("wb") as file:
        file.truncate(2 << 30)  # sparse
    repository.write("b", "1\n")
    told = repository.engine.uncommitted(str(repository.folder))
    assert [file.path for file in told.files] == ["b"]
    assert [(left.path, left.reason, left.size) for left in told.left_out] == [
        ("large", "too_large", 2 << 30)
    ]
    few = Engine(repository.home / "state", CheckpointsConfig(max_files=1))
    with pytest.raises(CommitError, match="max_files"):
        few.uncommitted(str(repository.folder))


def test_what_has_no_repository_is_said(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, bare = tmp_path / "plain", tmp_path / "bare"
    plain.mkdir()
    repository.git("clone", "-q", "--bare", ".", str(bare))
    for folder, said, code in (
        (plain, "is no git repository", "no_repository"),
        (bare, "is a bare repository", "bare_repository"),
        (tmp_path / "gone", "does not exist any more", "folder_missing"),
    ):
        with pytest.raises(CommitError, match=said) as refused:
            repository.engine.uncommitted(str(folder))
        assert refused.value.code == code
    monkeypatch.setenv("PATH", os.fspath(plain))
    with pytest.raises(CommitError, match="install git"):
        Engine(tmp_path / "state", CheckpointsConfig()).uncommitted(str(repository.folder))


def test_the_users_ignored_files_stay_out(repository: Repository) -> None:
    repository.commit(a="1\n")
    for place, name in ((repository.home / ".config/git/ignore", "x"), (repository.home / "mine", "y")):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(name + "\n")
        repository.write("x")
        repository.write("y")
        assert repository.paths() == {"y": "added"} if name == "x" else {"x": "added"}
        assert repository.patch() == repository.plain_diff()
        repository.git("config", "--global", "core.excludesFile", "~/mine")
    repository.git("config", "core.excludesFile", "/dev/zero")  # a repository's own does not count
    assert repository.paths() == {"x": "added"}
