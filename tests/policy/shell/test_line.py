"""What the reader sees in a shell line, and what it refuses to have understood."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from dragoman.policy.shell.line import Line, read_line
from dragoman.policy.shell.syntax import tree


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    (folder / "notes.txt").write_text("hello\n")
    (folder / "way-out").symlink_to(tmp_path)
    return folder


def read(project: Path, line: str) -> Line:
    return read_line(line, cwd=str(project), workspace=str(project), home="/home/me")


def commands(line: Line) -> list[list[str]]:
    return [list(command.words) for command in line.commands]


def outside(line: Line) -> list[str]:
    facts = [*line.paths, *(path for command in line.commands for path in command.paths)]
    return [fact.path for fact in facts if fact.outside]


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("git status", [["git", "status"]]),
        ("g'i't stat\"us\"", [["git", "status"]]),
        ("\\git status", [["git", "status"]]),
        ("/usr/bin/git status", [["/usr/bin/git", "status"]]),
        ("ls; rm x", [["ls"], ["rm", "x"]]),
        ("ls\nrm x", [["ls"], ["rm", "x"]]),
        ("ls & rm x", [["ls"], ["rm", "x"]]),
        ("ls | wc -l && pwd || id", [["ls"], ["wc", "-l"], ["pwd"], ["id"]]),
        ("timeout 5 nice -n 3 env A=1 nohup git status", [["git", "status"]]),
        ("env x+=1 make", [["make"]]),
        ("env a-b=c a/b=d make", [["make"]]),
        ("sudo -u me x+=1 make", [["sudo", "-u", "me", "x+=1", "make"], ["make"]]),
        ("find . -name x -exec rm {} +", [["rm", "{}"]]),
        ("bash -lc 'git status && rm x'", [["git", "status"], ["rm", "x"]]),
        ("if true; then ls; else rm x; fi", [["true"], ["ls"], ["rm", "x"]]),
        ("for f in a b; do rm $f; done", [["rm", "$f"]]),
        ("case $x in a) ls;; *) rm x;; esac", [["ls"], ["rm", "x"]]),
        ("ls > out extra", [["ls", "extra"]]),
        ("ls {,b} {a,}x ''", [["ls", "b", "ax", "x", ""]]),
        ("echo é 'ü ö'", [["echo", "é", "ü ö"]]),
    ],
)
def test_every_command_of_a_line_is_seen(project: Path, text: str, seen: list[list[str]]) -> None:
    line = read(project, text)
    assert line.opaque is None
    assert commands(line) == seen


@pytest.mark.parametrize(
    "text",
    [
        "$x", "`id`", "echo $(id)", "echo `id`", 'echo "$(id)"', "cat <(id)", "eval ls", "f() { ls; }; f",
        "function f { ls; }", "alias ls=rm; ls x", "trap 'rm x' EXIT", "sh <<'E'\nrm x\nE", "echo rm x | sh",
        "python3 - <<'E'\nE", "ls\rrm x", "x=rm; $x y", "ls (", "echo 'a", "source x", ". ./x", "exec $x",
        "sh -c \"$x\"", "sudo $x ls", "PATH=. git status", "GIT_PAGER=x git log", "LD_PRELOAD=./x.so ls",
        "export PAGER=x; git log", "git -c a=b log", "git --exec-path=. log", "[[ 'a[$(id)]' -eq 1 ]]",
        "test -v 'a[$(id)]'", "x='a[$(id)]'; echo $((x))", "printf -v 'a[$(id)]' 1", "find . -exec $x {} +",
        "hash -p ./x git; git status", "git \x00", "echo ${x@P}", "echo ${!x}", "coproc ls", "let x=1",
    ],
)  # fmt: skip
def test_what_is_not_understood_is_opaque(project: Path, text: str) -> None:
    assert read(project, text).opaque


def test_a_redirection_is_a_write_of_the_command(project: Path) -> None:
    line = read(project, "echo hi > src/new 2>&1 < notes.txt")
    facts = {(Path(path.path).name, path.access) for path in line.commands[0].paths}
    assert facts == {("new", "write"), ("notes.txt", "read")}


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("cat /etc/passwd", "/etc/passwd"),
        ("cat ../x", "x"),
        ("cat ~/.ssh/id", "/home/me/.ssh/id"),
        ("cat $HOME/x", "/home/me/x"),
        ("cat way-out/x", "x"),
        ("cat way-*/x", "way-*/x"),
        ("cd .. && cat x", "x"),
        ("cd ..; ls", ""),
        ("(cd /); cat /x", "/x"),
        ("grep -f/etc/shadow a", "/etc/shadow"),
        ("git diff --output=/tmp/y", "/tmp/y"),
        ("dd if=notes.txt of=/dev/sda", "/dev/sda"),
        ("cat $unknown", "$unknown"),
        ("env -C / cat x", "/x"),
        ("dd if=notes.txt of=~/x", "of=~/x"),
        ("git -C / status", "/"),
    ],
)
def test_paths_outside_the_workspace_are_marked(project: Path, text: str, where: str) -> None:
    assert any(path.endswith(where) for path in outside(read(project, text))), text


def test_a_folder_that_a_subshell_entered_is_left_with_it(project: Path) -> None:
    assert outside(read(project, "(cd /tmp; true); cat notes.txt")) == outside(
        read(project, "(cd /tmp; true)")
    )


@pytest.mark.parametrize(
    "text", ["cat src/a notes.txt", "cd src && cat ../notes.txt", "ls *.txt", "grep -r x src/**"]
)
def test_paths_inside_are_not(project: Path, text: str) -> None:
    line = read(project, text)
    assert line.opaque is None
    assert not outside(line)


def test_a_pattern_that_may_become_an_option_is_not_trusted(project: Path) -> None:
    assert read(project, "sort *").opaque is None
    (project / "--output=x").touch()
    assert read(project, "sort *").opaque
    assert read(project, "sort ./*").opaque is None


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a megabyte", "echo " + "a" * 1_000_000),
        ("ten thousand commands", "ls;" * 10_000),
        ("groups", "{ " * 5_000 + "ls" + "; }" * 5_000),
        ("subshells", "( " * 5_000 + "ls" + ")" * 5_000),
        ("substitutions", "echo " + "$(" * 20_000),
        ("shells", "sh -c '" + "sh -c " * 9_000 + "'"),
        ("wrappers", "env " * 15_000),
        ("braces", "echo " + "{a,b}" * 40),
        ("loops", "for a in 1 2; do " * 30 + "echo $((a+1))" + "; done" * 30),
        ("quotes", "echo " + "'\"" * 20_000),
    ],
)
def test_a_line_made_to_be_slow_is_opaque_soon(project: Path, name: str, text: str) -> None:
    start = time.process_time()
    assert read(project, text).opaque
    assert time.process_time() - start < 0.5


@pytest.mark.parametrize(
    "text",
    [
        "x='a -delete'; find . -name foo$x",
        "find . -name foo$x",
        "timeout -s $x 5 git status",
        "nice -n $x git status",
        "awk -F $x '{print}' notes.txt",
        "for f in src/*; do sort $f; done",
        "find git -exec {} status \\;",
        "git diff a$x",
        'git diff "${x[@]}"',
        "git || cd src && git diff $x",
        "x=a; x1=-delete; ls $x{1,2}",
        "ls $HOME{1..3}",
    ],
)
def test_an_unquoted_expansion_may_become_several_words(project: Path, text: str) -> None:
    assert read(project, text).opaque


def test_a_quoted_expansion_stays_one_word(project: Path) -> None:
    assert read(project, 'git diff "src/$x" "a${x%.py}"').opaque is None
    assert read(project, 'for f in src/*; do sort "$f"; done').opaque is None


def test_a_folder_that_is_entered_only_perhaps_leaves_both_possible(project: Path) -> None:
    line = read(project, "false || cd src && touch x")
    assert {Path(path.path).parent.name for path in line.commands[-1].paths} == {"project", "src"}


@pytest.mark.parametrize(
    ("text", "writes"),
    [
        ("git config user.name", False),
        ("git config --local user.name", False),
        ("git config --global --list", False),
        ("git config --get-regexp alias", False),
        ("git config user.name me", True),
        ("git config --unset user.name", True),
        ("git config --add alias.x y", True),
        ("git config -e", True),
        ("git config set user.name me", True),
    ],
)
def test_git_config_is_a_write_where_it_sets_something(project: Path, text: str, writes: bool) -> None:
    (command,) = read(project, text).commands
    assert any(path.access == "write" for path in command.paths) == writes


def test_a_grammar_that_cannot_be_loaded_makes_lines_opaque(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree._parser.cache_clear()
    monkeypatch.setitem(sys.modules, "tree_sitter_bash", None)
    assert "cannot be loaded" in str(read(project, "ls").opaque)
    monkeypatch.undo()
    assert read(project, "ls").opaque is None
