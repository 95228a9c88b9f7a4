"""Places that no agent may touch: the audit and its key, repositories, also where they are only inside what is named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from dragoman.config.model import PolicyRule
from dragoman.policy.act import Act, PathFact
from dragoman.policy.decide import Policy
from dragoman.policy.load import act_of_command
from dragoman.policy.rules import make_rules


@pytest.fixture
def policy(tmp_path: Path) -> Policy:
    anything = make_rules(
        [PolicyRule(decision="allow", command=[["cat"]], outside_workspace=True)], "user", "x"
    )
    return Policy(user=anything, protected=(str(tmp_path / "state"),))


@pytest.mark.parametrize("name", ["audit/key", "audit", "audit/20261118-k3vq7mfw/000000000001.ndjson"])
def test_the_audit_is_not_read(policy: Policy, tmp_path: Path, name: str) -> None:
    path = str(tmp_path / "state" / name)
    verdict = policy.decide(Act(paths=(PathFact(path, "read", True),)))
    assert (verdict.decision, verdict.rule) == ("deny", "built in")
    assert verdict.why == f"no agent may read {path}"
    line = act_of_command(f"cat {path}", cwd=str(tmp_path), workspace=str(tmp_path))
    assert policy.decide(line).decision == "deny"


def test_other_files_of_ours_may_be_read(policy: Policy, tmp_path: Path) -> None:
    path = str(tmp_path / "state" / "audits")
    assert policy.decide(Act(paths=(PathFact(path, "read", True),))).decision == "ask"


@pytest.mark.parametrize("line", ["rm -rf .", 'rm -rf "$PWD"', "mv . ../x", "rm -r ../project", "mv clone x"])
def test_a_tree_with_a_protected_place_is_not_taken_away(tmp_path: Path, line: str) -> None:
    project = tmp_path / "project"
    for name in (".git", "src", "clone/.dragoman"):
        (project / name).mkdir(parents=True)
    rules = [PolicyRule(decision="allow", command=[["rm"], ["mv"]], outside_workspace=True)]
    policy = Policy(user=make_rules(rules, "user", "x"))

    def decided(line: str) -> str:
        return policy.decide(act_of_command(line, cwd=str(project), workspace=str(project))).decision

    assert decided(line) == "deny"
    assert decided("rm -rf src") == decided("mv src lib") == "allow"


TREES = [
    *(
        "rm -rf vendor",
        "rm -rf vendor/",
        "mv vendor x",
        "chmod -R 777 .",
        "chmod -R 777 vendor",
        "chown -R me .",
    ),
    *("chgrp -R me vendor", "find . -delete", "find vendor -delete", "find . -name config -delete"),
    *(
        "find . -name 'pre-*' -exec rm {} +",
        "find . -exec rm -rf {} +",
        "find vendor -name lib -exec rm -r {} \\;",
    ),
    *("find . -type f -exec sed -i s/a/b/ {} +", "gzip -r .", "shred -u -r vendor", "find . -delete -name x"),
    *(
        "find . ! -name x -delete",
        "find . \\( -name x -o -true \\) -delete",
        "find . -iname CONFIG -delete",
        "find . -newer -name -delete",
    ),
    *("tar czf .git/config src", "tar -c -f .git/hooks/x src", "tar czf out.tgz --remove-files .git"),
    *(
        "zip -rm out.zip .git",
        "zip .git/config src",
        "tar czf out.tgz -g .git/config src",
        "zip out.zip -m .git",
    ),
    *("tar -czf a.tgz src -f .git/config", "zip -r out.zip src -O .git/config"),
]
FILLED = [
    *(
        "tar -xf a.tgz",
        "tar xzf a.tgz",
        "tar -xzf a.tgz -C .",
        "tar -C . -xzf a.tgz",
        "tar -xf a.tgz --directory=.",
    ),
    *(
        "tar -x -fC.tgz",
        "tar -x --exclude -C build -f a.tgz",
        "tar fx a.tgz",
        "tar -Mxf a.tgz",
        "tar xfC a.tgz .",
    ),
    *(
        "tar -xf a.tgz --exclude -O",
        "tar -xf a.tgz -C build -C ..",
        "git archive HEAD | tar -x",
        "tar xf a.tgz -T list",
    ),
    *(
        "bsdtar -xf a.zip",
        "tar -xf a.tgz -C vendor",
        "unzip a.zip",
        "unzip -o a.zip -d .",
        "unzip a.zip -dvendor",
    ),
    *(
        "unzip -o a.zip -d evil/..",
        "unzip -l- a.zip",
        "unzip -P -l a.zip",
        "unzip -P -dbuild a.zip",
        "7z x a.zip",
    ),
    *(
        "7z x a.zip -o.",
        "7z e a.zip -ovendor",
        "cpio -i < a.cpio",
        "cpio -idmv -F a.cpio",
        "ar x a.a",
        "jar xf a.jar",
    ),
    *("python -m zipfile -e a.zip .", "python3 -m tarfile -e a.tar", "patch -p1 < x.patch", "unrar x a.rar"),
    *(
        "cp -r evil src",
        "cp -r evil new",
        "cp -a vendor src",
        "rsync -a host:x/ .",
        "rsync -a host::x/ vendor",
    ),
    *(
        "rsync -a --delete payload/ .",
        "rsync -a payload/ . --delete-after",
        "rsync -a host:x/ . --exclude foo",
    ),
    *("scp -r host:x .", "wget -r -nH -P . http://x.example/", "rsync -a rsync://host/x/ ."),
    "tar -xzf a.tgz -C payload && cp -r payload/. .",
    "tar -xzf a.tgz -C payload && rsync -a payload/ .",
]
ORDINARY = [
    *(
        "tar -xzf a.tgz -C build",
        "tar xzf a.tgz -C build",
        "tar -xf a.tgz --directory build",
        "tar -xOf a.tgz x",
    ),
    *(
        "tar -xzf a.tgz -C new --strip-components=1",
        "mkdir -p out && tar -xzf a.tgz -C out",
        "tar -czf out.tgz .",
    ),
    *(
        "unzip a.zip -d build",
        "unzip -qo a.zip -d build",
        "unzip -l a.zip",
        "unzip -p a.zip x",
        "7z x a.zip -obuild",
    ),
    *("python -m zipfile -e a.zip build", "python -m zipfile -l a.zip", "patch src/a.py < x.patch"),
    *("cp -r src build", "cp -r src/. build", "cp -a payload/. build/", "cp -r payload/. .", "cp src/a.py ."),
    *("rsync -a payload/ .", "rsync -a --delete src/ build/", "rsync -a --exclude .git src/ build/"),
    *(
        "rsync -avs --stats --exclude .git src/ build/",
        "rsync -a host:x/ build/",
        "make && cp -r src/. build",
    ),
    *("rm -rf node_modules", "rm -rf build dist", "mv build dist", "chmod -R u+w build", "gzip -r build"),
    *("find . -name '*.pyc' -delete", "find . -name __pycache__ -exec rm -rf {} +", "find build -delete"),
    *(
        "find . -type d -name node_modules -prune -o -name '*.pyc' -delete",
        "find build -type f -exec rm {} +",
    ),
    *(
        "find . \\( -name '*.pyc' -o -name '*.pyo' \\) -delete",
        "find . -name '*.py' -exec sed -i s/a/b/ {} +",
    ),
    *(
        "tar czf out.tgz --exclude .git .",
        "tar -czf out.tgz . --exclude=.git",
        "tar -czf out.tgz .git/config",
    ),
    *("zip -r out.zip . -x .git", "zip -qr out.zip .git"),
    *("git clean -fdx", "git checkout main", "git checkout -- src", "wget -P . https://x.example/a.tgz"),
]


@pytest.fixture
def decided(tmp_path: Path) -> Callable[[str], tuple[str, str]]:
    """Decides about a line in a repository with another one further down, as under rules that name all its words."""
    project = tmp_path / "project"
    for name in (".git/hooks", "src", "build", "payload", "evil/.git", "vendor/lib/.git", "node_modules/x"):
        (project / name).mkdir(parents=True)
    for name in (".git/hooks/pre-commit", ".git/config", "src/a.py", "payload/x", "vendor/lib/.git/config"):
        (project / name).write_text("x")
    programs = """tar bsdtar zip rm mv cp chmod chown chgrp shred gzip sed find rsync scp unzip 7z cpio ar jar
        python python3 patch unrar wget git make mkdir"""
    words: list[list[str | list[str]]] = [[program] for program in programs.split()]
    rules = [PolicyRule(decision="allow", name="programs", access="write", command=words)]
    policy = Policy(user=make_rules(rules, "user", "x"))

    def decide(line: str) -> tuple[str, str]:
        act = act_of_command(line, cwd=str(project), workspace=str(project))
        verdict = policy.decide(
            replace(act, commands=tuple(replace(one, effects=()) for one in act.commands))
        )
        return verdict.decision, f"{line}: {verdict.why}"

    return decide


def test_a_tree_with_a_protected_place_further_down_is_left_alone(
    decided: Callable[[str], tuple[str, str]],
) -> None:
    assert [why for decision, why in map(decided, TREES) if decision != "deny"] == []


def test_files_of_unknown_names_do_not_go_over_a_protected_place(
    decided: Callable[[str], tuple[str, str]],
) -> None:
    assert [why for decision, why in map(decided, FILLED) if decision == "allow"] == []


def test_ordinary_lines_about_trees_need_no_question(decided: Callable[[str], tuple[str, str]]) -> None:
    assert [why for decision, why in map(decided, ORDINARY) if decision != "allow"] == []


def test_a_rule_may_name_the_options_of_tar_without_a_dash(tmp_path: Path) -> None:
    rules = [PolicyRule(decision="allow", command=[["tar", "xzf"]])]
    policy = Policy(user=make_rules(rules, "user", "x"))
    act = act_of_command("tar xzf a.tgz -C build", cwd=str(tmp_path), workspace=str(tmp_path))
    assert policy.decide(act).decision == "allow"


@pytest.mark.parametrize(
    "line", ["tar -xPf a.tgz -C build", "unzip -: a.zip -d build", "cpio -i -D build", "pax -r"]
)
def test_an_archive_that_may_name_any_path_is_outside(tmp_path: Path, line: str) -> None:
    act = act_of_command(line, cwd=str(tmp_path), workspace=str(tmp_path))
    assert any(path.outside and path.access == "write" for path in act.all_paths)


PLAIN = (
    '[core]\n\trepositoryformatversion = 0\n\tbare = false\n[remote "origin"]\n\turl = https://x.example/y\n'
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository, with clones in it: a plain one, and one whose settings run something."""
    folder = tmp_path / "project"
    for name in ("src", ".git/hooks", "clone/.git/hooks", "bad/.git", "inner/clone/.git", "full/clone/.git"):
        (folder / name).mkdir(parents=True)
    (folder / ".git/hooks/pre-commit").touch()
    (folder / "clone/.git/hooks/pre-commit.sample").touch()
    (folder / "clone/.git/config").write_text(PLAIN)
    (folder / "bad/.git/config").write_text(f"{PLAIN}[core]\n\tfsmonitor = touch pwned\n")
    (folder / "inner/clone/.git/config").write_text("[include]\n\tpath = ../../x\n")
    return folder


def decision(project: Path, line: str) -> str:
    programs: list[list[str | list[str]]] = [["rsync"], ["cp"], ["tar", "cf"], ["git", ["status", "log"]]]
    policy = Policy(user=make_rules([PolicyRule(decision="allow", command=programs)], "user", "x"))
    return policy.decide(act_of_command(line, cwd=str(project), workspace=str(project))).decision


@pytest.mark.parametrize(
    "line",
    [
        *("git status", "git -C clone status", "cd clone && git log"),
        *("cp -r clone copy", "cp -a clone/. copy", "rsync -a clone copy"),
        *(
            "rsync -a --exclude .git . copy/",
            "rsync -a --exclude=.git src/ copy/",
            "rsync -a --exclude=.git/ bad copy",
        ),
    ],
)
def test_a_plain_clone_may_be_used_and_copied_and_what_is_left_out_is_not_copied(
    project: Path, line: str
) -> None:
    assert decision(project, line) == "allow"


@pytest.mark.parametrize(
    "line",
    [
        *("git -C bad status", "cd bad && git status", "git -C bad/.. -C bad log", "git -C inner/clone log"),
        *("cp -r bad copy", "cp -r inner copy", "cp -r . ../copy", "cp -r clone full", "rsync -a bad copy"),
        *("rsync -a --include .git --exclude .git . copy/", "rsync -a -f 'P x' --exclude .git bad copy"),
        "rsync -a --exclude '*.git' bad copy",
    ],
)
def test_settings_of_another_repository_that_may_run_something_are_asked_about(
    project: Path, line: str
) -> None:
    assert decision(project, line) == "ask"


@pytest.mark.parametrize(
    ("settings", "file"),
    [
        ("[core]\n\tbare = false\\\n[core]\n\tfsmonitor = x", ""),
        ("[core] fsmonitor = x", ""),
        ('[remote "x"]\n\turl = ext::sh -c id', ""),
        ('[diff "x"]\n\ttextconv = id', ""),
        ('[includeIf "gitdir:/"]\n\tpath = x', ""),
        (PLAIN, "hooks/post-index-change"),
        (PLAIN, "config.worktree"),
        (PLAIN, "commondir"),
    ],
)
def test_what_a_clone_does_not_write_may_run_something(project: Path, settings: str, file: str) -> None:
    (project / "clone/.git/config").write_text(settings)
    if file:
        (project / "clone/.git" / file).touch()
    assert decision(project, "git -C clone status") == "ask"


def test_a_git_file_has_to_lead_into_the_repository_of_the_project(project: Path) -> None:
    (project / "linked").mkdir()
    (project / "linked/.git").write_text(f"gitdir: {project}/.git/worktrees/linked\n")
    assert decision(project, "git -C linked status") == "allow"
    (project / "linked/.git").write_text("gitdir: ../bad/.git\n")
    assert decision(project, "git -C linked status") == "ask"
