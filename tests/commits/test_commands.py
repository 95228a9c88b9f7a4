"""`dragoman changes --uncommitted` and `dragoman commit`."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path

import pytest

from dragoman.audit.read import Query, query
from support.command_line import CommandLine
from support.commits.repository import Repository
from support.gateway_process import Start, agent
from support.rpc_peer import PATIENCE
from support.session_client import notice
from support.store.journal_reader import records


@pytest.fixture
def shell(home: Path, repository: Repository) -> CommandLine:
    made = CommandLine(home, repository.folder)
    made.env["HOME"] = str(repository.home)
    made.configure(checkpoints={"patience": PATIENCE})
    return made


def worked(shell: CommandLine, script: str) -> str:
    """A session with one turn, without an owner now."""
    done = shell.run("exec", script)
    assert done.returncode == 0, done.stderr
    return done.stderr.split()[-1]


def test_what_is_not_committed_is_shown_in_three_ways(shell: CommandLine, repository: Repository) -> None:
    repository.commit(a="1\n")
    session = worked(shell, f"sh echo 2 > {repository.folder}/a")
    repository.write("by hand\n\u202e", "1\n")
    for words in ((), (session,)):
        done = shell.run("changes", *words, "--uncommitted")
        assert (done.returncode, done.stdout.encode()) == (0, repository.plain_diff())
    done = shell.run("changes", "--uncommitted", "--stat")
    assert done.stdout.splitlines()[1].split() == ["M", "a", "+1", "-1"]
    assert "by hand\\n" in done.stdout and "\u202e" not in done.stdout
    told = json.loads(shell.run("changes", "--uncommitted", "--json").stdout)
    assert (told["branch"], [file["status"] for file in told["files"]]) == ("main", ["modified", "added"])
    done = shell.run("changes", "--uncommitted", "--turn", "1")
    assert (done.returncode, "leave out --turn" in done.stderr) == (2, True)


def test_no_commit_and_no_branch_are_said(shell: CommandLine, repository: Repository) -> None:
    done = shell.run("changes", "--uncommitted", "--stat")
    assert "there is no commit yet" in done.stderr
    repository.commit(a="1\n")
    repository.git("checkout", "-q", "--detach")
    done = shell.run("changes", "--uncommitted", "--stat")
    assert (done.returncode, "detached" in done.stderr) == (0, True)


# -- commit


@pytest.fixture
def bare(repository: Repository, tmp_path: Path) -> Path:
    place = tmp_path / "bare.git"
    repository.git("init", "-q", "--bare", "-b", "main", str(place))
    repository.git("remote", "add", "origin", str(place))
    return place


def test_what_the_session_changed_is_committed_and_pushed(
    shell: CommandLine, repository: Repository, bare: Path, home: Path
) -> None:
    repository.commit(a="1\n", mine="1\n")
    session = worked(shell, f"sh echo 2 > {repository.folder}/a; echo 1 > {repository.folder}/new")
    repository.write("mine", "2\n")
    done = shell.run("commit", session)
    assert (done.returncode, "give a message: -m TEXT" in done.stderr) == (2, True)
    done = shell.run("commit", session, "-m", "Change a", "--push", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    head = repository.git("rev-parse", "HEAD")
    assert (told["committed"]["commit"], told["committed"]["files"]) == (head, ["a", "new"])
    assert (told["pushed"]["branch"], repository.git("ls-remote", str(bare), "main").split()[0]) == (
        "main",
        head,
    )
    assert repository.git("status", "--porcelain") == "M mine"
    done = shell.run("commit", session, "-m", "Again")
    assert (done.returncode, "nothing to commit" in done.stderr) == (1, True)
    done = shell.run("commit", session, "--push")
    assert (done.returncode, "had been pushed" in done.stderr) == (0, True)
    done = shell.run("commit", session, "mine", "-m", "Mine")
    assert (done.returncode, done.stdout) == (0, "mine\n")
    made, second = query(home / "audit", Query(session=session, kind="commit_made"))
    assert (made["branch"], made["files"], made["by"], made["count"]) == ("main", ["a", "new"], "local", 2)
    assert second["before"] == head
    pushed, _ = query(home / "audit", Query(session=session, kind="pushed"))
    assert (pushed["commit"], pushed["remote"]) == (head, "origin")
    kept = records(home, session, "commit_made")
    assert [one["commit"] for one in kept] == [head, repository.git("rev-parse", "HEAD")]


def test_a_file_that_was_also_edited_by_hand_needs_a_word(shell: CommandLine, repository: Repository) -> None:
    repository.commit(a="1\n")
    session = worked(shell, f"sh echo 2 > {repository.folder}/a; echo 1 > {repository.folder}/b")
    repository.write("a", "by hand\n")
    done = shell.run("commit", session, "-m", "x")
    assert done.returncode == 1
    assert "changed a:" in done.stderr and "--shared include" in done.stderr
    done = shell.run("commit", session, "-m", "x", "--shared", "leave")
    assert (done.returncode, done.stdout, "left out: a" in done.stderr) == (0, "b\n", True)


def test_what_was_changed_before_the_session_needs_a_word(shell: CommandLine, repository: Repository) -> None:
    repository.commit(a="1\n", b="1\n")
    repository.write("a", "1\nby hand\n")
    first = worked(shell, f"sh echo 2 >> {repository.folder}/a; echo 2 >> {repository.folder}/b")
    done = shell.run("commit", first, "-m", "x")
    assert (done.returncode, "changed a:" in done.stderr) == (1, True), done.stderr
    second = worked(shell, f"sh echo 3 >> {repository.folder}/b; echo 1 > {repository.folder}/c")
    done = shell.run("commit", second, "-m", "x")
    assert (done.returncode, "changed b:" in done.stderr) == (1, True), done.stderr
    done = shell.run("commit", second, "-m", "x", "--shared", "include")
    assert (done.returncode, done.stdout) == (0, "b\nc\n"), done.stderr
    done = shell.run("exec", "-s", second, f"sh echo 4 >> {repository.folder}/b")
    assert done.returncode == 0, done.stderr
    done = shell.run("commit", second, "-m", "y")  # what was there before is committed
    assert (done.returncode, done.stdout) == (0, "b\n"), done.stderr


def test_one_turn_is_committed(shell: CommandLine, repository: Repository) -> None:
    repository.commit(a="1\n")
    session = worked(shell, f"sh echo 1 > {repository.folder}/b")
    done = shell.run("exec", "-s", session, f"sh echo 1 > {repository.folder}/c")
    assert done.returncode == 0, done.stderr
    done = shell.run("commit", session, "--turn", "2", "-m", "Second")
    assert (done.returncode, done.stdout) == (0, "c\n"), done.stderr
    assert shell.run("commit", "--all", "-m", "Rest").stdout == "b\n"


def test_rules_decide_about_commit_and_push(
    shell: CommandLine, repository: Repository, bare: Path, home: Path
) -> None:
    before = repository.commit(a="1\n")
    rules = [
        {
            "name": "no commits",
            "decision": "deny",
            "command": [["git", "commit"]],
            "reason": "Not on Fridays.",
        }
    ]
    shell.configure(checkpoints={"patience": PATIENCE}, policy={"rules": rules})
    session = worked(shell, f"sh echo 2 > {repository.folder}/a")
    done = shell.run("commit", session, "-m", "x")
    assert (done.returncode, "Not on Fridays." in done.stderr) == (1, True), done.stderr
    assert repository.git("rev-parse", "HEAD") == before
    assert list(query(home / "audit", Query(session=session, kind="commit_made"))) == []
    denied = list(query(home / "audit", Query(session=session, kind="decision")))
    assert [one["decision"] for one in denied] == ["deny"]
    ask = [{"name": "ask to push", "decision": "ask", "command": [["git", "push"]]}]
    shell.configure(checkpoints={"patience": PATIENCE}, policy={"rules": ask})
    done = shell.run("commit", session, "-m", "x", "--push")
    assert done.returncode == 1
    assert "not allowed by a person" in done.stderr and "done before: committed" in done.stderr
    assert repository.git("ls-remote", str(bare)) == ""
    with shell.terminal("commit", session, "--push") as terminal:
        terminal.until("A rule asks: git push origin main. Allow it?")
        terminal.type("y\n")
        assert terminal.end() == 0
    assert "refs/heads/main" in repository.git("ls-remote", str(bare))


def test_a_pull_request_is_opened_unless_a_rule_denies_it(
    shell: CommandLine, repository: Repository, bare: Path, home: Path, tmp_path: Path
) -> None:
    program = tmp_path / "bin" / "gh"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho https://github.com/o/r/pull/1\n")
    program.chmod(0o755)
    shell.env["PATH"] = f"{program.parent}:{shell.env['PATH']}"
    repository.git("remote", "set-url", "origin", "https://github.com/o/r.git")
    repository.git("config", "--global", f"url.{bare}.insteadOf", "https://github.com/o/r.git")
    repository.commit(a="1\n")
    session = worked(shell, f"sh echo 2 > {repository.folder}/a")
    done = shell.run("commit", session, "-m", "Change a", "--pr", "--base", "main")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "https://github.com/o/r/pull/1"), (
        done.stderr
    )
    (opened,) = query(home / "audit", Query(session=session, kind="pull_request_opened"))
    assert (opened["branch"], opened["into"], opened["remote"]) == (
        "main",
        "main",
        "https://github.com/o/r.git",
    )
    no = {
        "name": "no",
        "decision": "deny",
        "command": [["gh", "pr"]],
        "hosts": ["github.com"],
        "reason": "By hand.",
    }
    shell.configure(checkpoints={"patience": PATIENCE}, policy={"rules": [no]})
    done = shell.run("commit", session, "--pr")
    assert (done.returncode, "By hand." in done.stderr) == (1, True), done.stderr


def test_a_person_writes_or_confirms_the_message(
    shell: CommandLine, repository: Repository, tmp_path: Path
) -> None:
    repository.commit(a="1\n")
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\necho "By the editor" > "$1"\n')
    editor.chmod(0o755)
    repository.git("config", "core.editor", "false")
    shell.env["EDITOR"] = str(editor)
    session = worked(shell, f"sh echo 2 > {repository.folder}/a")
    with shell.terminal("commit", session) as terminal:
        assert terminal.end() == 0, terminal.shown
    assert repository.git("log", "-1", "--format=%s") == "By the editor"
    repository.write("b")
    for answer, code in (("no", 1), ("yes", 0)):
        with shell.terminal("commit", session, "b", "--propose") as terminal:
            terminal.until("Commit with this message")
            terminal.type(f"{answer}\n")
            assert terminal.end() == code, terminal.shown
    assert repository.git("log", "-1", "--format=%s").startswith("Propose a git commit message")
    repository.write("c")
    done = shell.run("commit", session, "c", "--propose")
    assert (done.returncode, "a person confirms" in done.stderr) == (2, True)
    assert "Propose a git commit message" in done.stdout


def test_bad_usage_of_commit_is_named(shell: CommandLine) -> None:
    for words, said in (
        (["-m", "x", "--propose"], "either --message or --propose"),
        (["ID", "--all", "--turn", "1"], "choose one of"),
        (["--draft"], "need --pr"),
    ):
        done = shell.run("commit", *words)
        assert (done.returncode, said in done.stderr) == (2, True), done.stderr


def test_a_session_in_a_worktree_is_committed_to_its_branch(
    shell: CommandLine, repository: Repository
) -> None:
    before = repository.commit(a="1\n")
    done = shell.run("exec", "--worktree", "--name", "one", "sh echo 2 > a")
    assert done.returncode == 0, done.stderr
    session = done.stderr.split()[-1]
    done = shell.run("commit", session, "-m", "Change a", "--json")
    assert json.loads(done.stdout)["committed"]["branch"] == "dragoman/one", done.stderr
    assert (repository.git("rev-parse", "main"), repository.git("show", "dragoman/one:a")) == (before, "2")


async def test_the_owner_of_a_session_commits(
    dragoman: Start, shell: CommandLine, repository: Repository, home: Path
) -> None:
    repository.commit(a="1\n")
    rules = [{"name": "ask", "decision": "ask", "command": [["git", "commit"]], "approvers": ["ann"]}]
    gateway = await dragoman(
        agents={"scripted": agent()},
        checkpoints={"patience": PATIENCE},
        policy={"rules": rules},
        env={"HOME": str(repository.home)},
    )
    await gateway.initialize()
    session = await gateway.new_session(repository.folder)
    await gateway.prompt(session, f"sh echo 2 > {repository.folder}/a")
    with shell.start("commit", session, "-m", "Change a") as process:
        assert "waits for 1 approval of ann" in await notice(gateway, session, "waits")
        process.send_signal(signal.SIGINT)  # it is withdrawn, and nothing is committed
        await asyncio.to_thread(process.wait)
    ended = await gateway.next_message(
        lambda message: message.get("params", {}).get("update", {}).get("status") == "failed"
    )
    assert ended["params"]["update"]["sessionUpdate"] == "tool_call_update"
    assert repository.git("log", "-1", "--format=%s") == "first"
    assert (await gateway.prompt(session, "say on")).texts == ["on"]
    done = await asyncio.to_thread(shell.run, "commit", session, "--propose")
    assert (done.returncode, "Propose a git commit message" in done.stdout) == (2, True), done.stderr
