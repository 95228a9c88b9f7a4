"""A branch is pushed to its remote, and a pull request is opened; the repository's configuration runs nothing."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from dragoman.commits.remotes import read_address
from dragoman.gateway.ports.commits import CommitError, CommitWish, PushPlan
from support.commits.repository import Repository


@pytest.fixture
def bare(repository: Repository, tmp_path: Path) -> Path:
    place = tmp_path / "bare.git"
    subprocess.run(["git", "init", "-q", "--bare", str(place)], check=True)
    repository.git("remote", "add", "origin", str(place))
    repository.commit("Add a\n\nBecause.", a="1\n")
    return place


def tip(bare: Path, branch: str = "main") -> str:
    done = subprocess.run(
        ["git", "-C", str(bare), "rev-parse", branch], capture_output=True, text=True, check=False
    )
    return done.stdout.strip()


def plan(repository: Repository) -> PushPlan:
    return repository.engine.plan_push(str(repository.folder))


def test_a_branch_is_pushed_under_its_name(repository: Repository, bare: Path) -> None:
    repository.git("checkout", "-q", "-b", "Feature/x")
    repository.git("config", "branch.Feature/x.merge", "refs/heads/main")  # not pushed there
    done = repository.engine.push(plan(repository), hooks=False)
    head = repository.git("rev-parse", "HEAD")
    assert (done.remote, done.branch, done.changed, tip(bare, "Feature/x")) == (
        "origin",
        "Feature/x",
        True,
        head,
    )
    assert (tip(bare), repository.git("rev-parse", "origin/Feature/x")) == ("main", head)
    assert not repository.engine.push(plan(repository), hooks=False).changed


def test_a_remote_with_other_commits_is_not_overwritten(
    repository: Repository, bare: Path, tmp_path: Path
) -> None:
    repository.engine.push(plan(repository), hooks=False)
    other = Repository(tmp_path / "other", repository.home)
    repository.git("clone", "-q", "-b", "main", str(bare), str(other.folder))
    theirs = other.commit("theirs", b="1\n")
    other.git("push", "-q")
    repository.commit("mine", c="1\n")
    with pytest.raises(CommitError, match="git pull --rebase") as refused:
        repository.engine.push(plan(repository), hooks=False)
    assert (refused.value.code, tip(bare)) == ("push_failed", theirs)


def test_a_hostile_repository_runs_nothing_for_a_push(
    repository: Repository, bare: Path, tmp_path: Path
) -> None:
    mark = tmp_path / "ran"
    repository.arm(mark)
    for key, value in (
        ("remote.origin.receivepack", f"touch {mark}; git-receive-pack"),
        ("remote.origin.vcs", "evil"),
        ("remote.origin.proxy", "evil"),
        ("push.recurseSubmodules", "on-demand"),
    ):
        repository.git("config", key, value)
    hooks = bare / "hooks"
    for name in ("pre-receive", "update", "post-receive", "post-update", "reference-transaction"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {mark}\n")
        (hooks / name).chmod(0o755)
    repository.engine.push(plan(repository), hooks=False)
    assert tip(bare) == repository.git("rev-parse", "HEAD")
    assert not mark.exists()


def test_hooks_run_for_a_push_if_a_person_allows_it(
    repository: Repository, bare: Path, tmp_path: Path
) -> None:
    hook, mark = repository.folder / ".git" / "hooks" / "pre-push", tmp_path / "ran"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {mark}\n")
    hook.chmod(0o755)
    repository.engine.push(plan(repository), hooks=True)
    assert mark.exists() and tip(bare) == repository.git("rev-parse", "HEAD")


@pytest.mark.parametrize(
    "url",
    [
        "ext::sh -c evil% %S",
        "-oProxyCommand=evil",
        "--upload-pack=evil",
        "evil::x",
        "foo://host/x",
        "a\nb",
        "git@h\x1b:x",
    ],
)
def test_an_address_that_names_a_program_is_refused(repository: Repository, url: str) -> None:
    repository.commit(a="1\n")
    repository.git("config", "remote.origin.url", url)
    with pytest.raises(CommitError) as refused:
        plan(repository)
    assert refused.value.code == "bad_remote"


@pytest.mark.parametrize(
    ("url", "shown", "host", "path"),
    [
        ("https://me:secret@github.com/o/r.git", "https://github.com/o/r.git", "github.com", "o/r"),
        ("git@GitHub.com:o/r.git", "git@GitHub.com:o/r.git", "github.com", "o/r"),
        ("ssh://git@h:22/o/r", "ssh://git@h:22/o/r", "h", "o/r"),
        ("../bare.git", "../bare.git", "", "/p/../bare.git"),
        ("./a:b", "./a:b", "", "/p/a:b"),
    ],
)
def test_an_address_is_shown_without_its_password(url: str, shown: str, host: str, path: str) -> None:
    assert read_address(url, "/p") == (shown, host, path)


def test_a_missing_remote_or_commit_is_said(repository: Repository) -> None:
    with pytest.raises(CommitError, match="no commit yet"):
        plan(repository)
    repository.commit(a="1\n")
    with pytest.raises(CommitError, match="git remote add origin"):
        plan(repository)
    for name in ("one", "two"):
        repository.git("remote", "add", name, f"/nowhere/{name}")
    with pytest.raises(CommitError, match="several remotes"):
        plan(repository)
    repository.git("config", "branch.main.pushRemote", "two")
    with pytest.raises(CommitError, match=r"was not pushed: .*nowhere/two"):
        repository.engine.push(plan(repository), hooks=False)
    repository.git("checkout", "-q", "--detach")
    with pytest.raises(CommitError, match="detached"):
        plan(repository)


# -- pull requests


def at_host(repository: Repository, bare: Path, url: str) -> PushPlan:
    """The remote is at a host, which the user's configuration leads to the folder."""
    repository.git("config", "remote.origin.url", url)
    repository.git("config", "--global", f"url.{bare}.insteadOf", url)
    return plan(repository)


def stub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, then: str) -> Path:
    """A program that writes down how it was called."""
    folder, called = tmp_path / "bin", tmp_path / "called"
    folder.mkdir()
    made = folder / name
    made.write_text(
        f'#!/usr/bin/env python3\nimport json, os, sys\nopen({str(called)!r}, "w").write(json.dumps('
        f"[sys.argv[1:], os.listdir(), sys.stdin.read(), {{n: v for n, v in os.environ.items()}}]))\n{then}\n"
    )
    made.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    return called


def test_gh_opens_a_pull_request(
    repository: Repository, bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    called = stub(tmp_path, monkeypatch, "gh", 'print("https://github.com/o/r/pull/7")')
    pushing = at_host(repository, bare, "https://github.com/o/r.git")
    mark = tmp_path / "ran"
    repository.arm(mark)  # `insteadOf` with `ext::` too
    repository.engine.push(pushing, hooks=False)
    assert tip(bare) == repository.git("rev-parse", "HEAD")
    opening = repository.engine.plan_pull_request(pushing, CommitWish(base="main", draft=True))
    assert repository.engine.open_pull_request(opening) == "https://github.com/o/r/pull/7"
    words, files, given, env = json.loads(called.read_text())
    assert words[:6] == ["pr", "create", "--repo", "github.com/o/r", "--head", "main"]
    assert words[6:] == ["--base", "main", "--title", "Add a", "--body", "Because.", "--draft"]
    assert (files, given, env["GH_PROMPT_DISABLED"], "GIT_DIR" in env) == ([], "", "1", False)
    assert not mark.exists()


def test_glab_opens_a_merge_request_and_its_refusal_is_told(
    repository: Repository, bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    called = stub(tmp_path, monkeypatch, "glab", 'sys.exit("it exists already")')
    pushing = at_host(repository, bare, "git@gitlab.example.org:group/sub/r.git")
    opening = repository.engine.plan_pull_request(pushing, CommitWish())
    with pytest.raises(CommitError, match="glab said: it exists already"):
        repository.engine.open_pull_request(opening)
    words = json.loads(called.read_text())[0]
    assert words[:4] == ["mr", "create", "--repo", "https://gitlab.example.org/group/sub/r"]
    assert "--yes" in words


def test_without_a_program_the_way_by_hand_is_told(
    repository: Repository, bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pushing = at_host(repository, bare, "https://github.com/o/r.git")
    inside = repository.write("bin/gh", "#!/bin/sh\necho https://evil\n")  # one in the project does not count
    inside.chmod(0o755)
    monkeypatch.setenv("PATH", str(inside.parent), prepend=":")
    opening = repository.engine.plan_pull_request(pushing, CommitWish())
    with pytest.raises(CommitError, match=r"gh pr create --repo github.com/o/r .*compare/main"):
        repository.engine.open_pull_request(opening)
    with pytest.raises(CommitError, match=r"No program is known .* forge.example.org"):
        pushing = at_host(repository, bare, "https://forge.example.org/o/r.git")
        repository.engine.plan_pull_request(pushing, CommitWish())
