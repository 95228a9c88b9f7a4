"""How deep a program goes into a folder that it is given: `ls src` not at all, `grep -r` into each file below."""

from __future__ import annotations

import re
from dataclasses import replace

from dragoman.policy.act import Access, Below, PathFact
from dragoman.policy.shell.places import facts_in_folder, facts_of, linked_from
from dragoman.policy.shell.programs.files import COPIES, follows_links, makes_links
from dragoman.policy.shell.programs.names import names
from dragoman.policy.shell.programs.operands import operands, operands_left_out
from dragoman.policy.shell.programs.unpack import filled_folders
from dragoman.policy.shell.values import Arg, Scope, fixed

_FLAT = names(
    """
    cd pushd popd stat file readlink realpath test [ touch mkdir rmdir basename dirname df date tee truncate
    unlink mkfifo mknod chdir git
    """
)
"""Programs that take a folder as one thing. What git does with one depends on its subcommand."""
_RUNS_CODE = names(
    """
    pytest py.test python python3 node cargo go npm pnpm yarn make gmake mypy pyright tsc eslint ruff black isort
    prettier flake8 pylint jest vitest tox nox gradle gradlew mvn mvnw just task rake ninja cmake
    """
)
"""Programs that run or build a project: no rule on paths says what those read, with a folder or without."""
_RECURSIVE = r"-[^-]*[rR].*|--rec.*"
_WITH_OPTION: dict[str, str] = {
    **dict.fromkeys(("ls", "dir", "vdir"), r"-[^-]*R.*|--rec.*"),
    **dict.fromkeys(("exa", "eza"), r"-[^-]*[RT].*|--rec.*|--tree.*"),
    **dict.fromkeys(("grep", "egrep", "fgrep", "zgrep"), _RECURSIVE + r"|--der.*|-[^-]*d.*|--dir.*"),
    **dict.fromkeys(
        ("rm", "chmod", "chown", "chgrp", "scp", "gzip", "gunzip", "xz", "diff", "shred"), _RECURSIVE
    ),
    "cp": _RECURSIVE + r"|-[^-]*a.*|--arc.*",
    "rsync": _RECURSIVE + r"|-[^-]*[ad].*|--arc.*|--dirs.*|--fil.*",
    "zip": _RECURSIVE,
}
"""Options without which a folder is not entered."""
_HERE = {
    **dict.fromkeys(("rg", "ag", "ack", "fd", "fdfind", "tree", "du", "ugrep", "ncdu"), r".*"),
    **{
        program: _WITH_OPTION[program]
        for program in ("ls", "dir", "vdir", "exa", "eza", "grep", "egrep", "fgrep")
    },
}
"""Programs that look into the folder of the line if they are given none, with the options for it."""
_SKIPS_HIDDEN: dict[str, str] = {
    "rg": r"-[^-]*[.ug].*|--hid.*|--unr.*|--no-ig.*|--[gi].*",
    "ag": r"-[^-]*[auU].*|--hid.*|--unr.*|--all.*|--skip.*",
    **dict.fromkeys(("fd", "fdfind"), r"-[^-]*[Hu].*|--hid.*|--unr.*|--no-ig.*"),
}
"""Programs that leave hidden files out, save with these options."""
_NAMES_ONLY = names("ls dir vdir exa eza tree du ncdu find fd fdfind rg ag ack")
"""Programs that print names, or that leave out what version control ignores."""
_KNOWN = names(
    """
    cat head tail wc cut nl tac rev od hexdump xxd strings diff cmp comm cksum md5sum sha1sum sha256sum sha512sum b2sum
    sort uniq base64 less more bat zcat grep egrep fgrep zgrep tar zip rsync cp scp mv ln rm chmod chown chgrp shred
    gzip bzip2 xz zstd sed awk jq
    """
)


def files_and_folders(
    program: str,
    words: list[Arg],
    compared: list[Arg],
    pairs: list[tuple[Arg, Access]],
    scope: Scope,
    workspace: str,
) -> list[PathFact]:
    """Facts of the arguments that are files, and of the folders that the program looks into."""
    below = git_depth(compared) if program == "git" else depth(program, words[1:])
    here = git_reads_folder(compared) if program == "git" else reads_folder(program, words[1:])
    pairs = [*pairs, (fixed("."), "read")] if here else pairs
    plain, surely = copied_and_target(program, words[1:]) if program in COPIES else ([], False)
    if plain and all(plain[-1] is not arg for arg in words):  # joined to its option: `-tfolder`
        pairs = [*pairs, (plain[-1], "write")]
    if makes_links(program, words[1:]):
        pairs = [*pairs, *((linked_from(plain[-1], arg, scope), "read") for arg in plain[:-1])]
    found: list[PathFact] = []
    for arg, access in pairs:
        facts = facts_of(arg, access, scope, workspace)
        # Of the folder that is copied to, only what has the name of a copy is touched.
        found += facts if plain and arg is plain[-1] else _going_in(facts, _below_of(arg, below))
    for folder in filled_folders(program, words[1:]):
        found += [replace(fact, fills=True) for fact in facts_of(folder, "write", scope, workspace)]
    if len(plain) > 1:
        slash = program == "rsync" and any((arg.only or "").endswith("/") for arg in plain[:-1])
        contents = slash or any(re.match(r"-[^-]*T|--no-t", arg.text) for arg in words[1:])
        copied = facts_in_folder(plain[-1], plain[:-1], scope, workspace, contents=contents, surely=surely)
        found += _going_in(copied, below)
        left_out = operands_left_out(words[1:]) if program == "rsync" else ()
        filled = _filled(plain, scope, workspace) if below is not None else []
        found += [replace(fact, left_out=left_out) for fact in filled]
    return found


def _below_of(arg: Arg, below: Below | None) -> Below | None:
    if not arg.found:
        return below
    return replace(below, sure=True, names=arg.names) if below is not None else Below(names=arg.names)


def _filled(plain: list[Arg], scope: Scope, workspace: str) -> list[PathFact]:
    """The target of a copy of whole folders. What ran before in the line may have put anything into them."""
    sources: list[PathFact] = []
    for arg in plain[:-1]:
        sources += facts_of(arg, "read", scope, workspace)
    places = [place for source in sources for place in (source.path, *source.names)]
    known = not scope.wrote and all(source.known and not source.more for source in sources)
    like = tuple(dict.fromkeys(places)) if known else ()
    return [replace(fact, fills=True, like=like) for fact in facts_of(plain[-1], "write", scope, workspace)]


_TARGET_OPTION = frozenset({"cp", "mv", "install", "ln"})
_COPY_TAKES = {"install": "Smgo"}
"""Letters of options of these programs, besides `t`, that have a value."""


def copied_and_target(program: str, words: list[Arg]) -> tuple[list[Arg], bool]:
    """What a program copies, moves or links, then the place that it goes to; whether `-t` says that it is a folder."""
    target: Arg | None = None
    follows = False
    for arg in words if program in _TARGET_OPTION else ():
        text = arg.only if arg.only is not None else arg.text
        if follows:
            target, follows = arg, False
        elif text.startswith("-") and (value := _target(program, text)) is not None:
            target, follows = (fixed(value), False) if value else (target, True)
    plain = operands(program, words).plain
    return (plain, False) if target is None else ([*plain, target], True)


def _target(program: str, text: str) -> str | None:
    """The folder in an option that names it; empty if it is the next word, None for another option."""
    if text.startswith("--"):
        return text.partition("=")[2] if text.startswith("--t") else None
    takes = _COPY_TAKES.get(program, "S")
    letters = re.match(rf"-[^t{takes}-]*t(.*)", text, re.DOTALL)
    return letters[1] if letters is not None else None


def _going_in(facts: list[PathFact], below: Below | None) -> list[PathFact]:
    return [replace(fact, below=below) for fact in facts] if below is not None else facts


def depth(program: str, words: list[Arg]) -> Below | None:
    """How the program goes into folders among its arguments; None if it does not."""
    if program in _FLAT or program in _RUNS_CODE:
        return None
    wanted = _WITH_OPTION.get(program)
    if wanted is not None and not _has(words, wanted):
        return None
    hidden = _SKIPS_HIDDEN.get(program)
    return Below(
        sure=program in _KNOWN and program not in _NAMES_ONLY,
        hidden=hidden is None or _has(words, hidden),
        links=follows_links(program, words),
    )


def reads_folder(program: str, words: list[Arg]) -> bool:
    """Whether the program looks into the folder of the line because no other is named."""
    wanted = _HERE.get(program)
    if wanted is None or not (wanted == r".*" or _has(words, wanted)):
        return False
    named, before = 0, ""
    for arg in words:
        text = arg.only if arg.only is not None else arg.prefix
        if not text.startswith("-") or text == "-":
            named += not _takes_value(program, before)
        before = text
    pattern = program in _PATTERN_FIRST and not any(_GIVES_PATTERN.fullmatch(arg.only or "") for arg in words)
    return named <= pattern


_PATTERN_FIRST = names("rg ag ack fd fdfind ugrep grep egrep fgrep")
_GIVES_PATTERN = re.compile(r"-[^-]*[ef]|--(?:reg|file).*", re.DOTALL)
_TAKES_VALUE = {
    **dict.fromkeys(("grep", "egrep", "fgrep", "ugrep"), "ABCmdDef"),
    "rg": "ABCgtTmMjErdef",
    "ag": "ABCmGp",
    "ack": "ABCmg",
    **dict.fromkeys(("fd", "fdfind"), "detSoEcCjxX"),
    "tree": "LPIoHT",
    "du": "dtXB",
    **dict.fromkeys(("ls", "dir", "vdir"), "IwT"),
    **dict.fromkeys(("exa", "eza"), "LIst"),
}
"""Letters of options whose value is the next word."""
_FLAGS = names(
    """
    --line-number --ignore-case --recursive --files-with-matches --count --invert-match --word-regexp --fixed-strings
    --extended-regexp --perl-regexp --no-heading --heading --hidden --files --with-filename --no-filename
    --only-matching --quiet --json --smart-case --follow --multiline --dereference-recursive --all --long --
    """
)
"""Long options without a value; any other takes the next word for its own."""


def _takes_value(program: str, before: str) -> bool:
    if before.startswith("--"):
        return "=" not in before and before not in _FLAGS
    return before.startswith("-") and before[-1] in _TAKES_VALUE.get(program, "")


def git_depth(words: list[Arg]) -> Below | None:
    """How git goes into folders, or into the one that it works in; None if it prints no files of a folder."""
    subcommand = words[1].only if len(words) > 1 else None
    if subcommand in ("grep", "archive") or any((arg.only or "").startswith("--no-i") for arg in words):
        return Below(sure=False)
    return Below(sure=False) if any(arg.only == "--" for arg in words) else None


def git_reads_folder(words: list[Arg]) -> bool:
    return len(words) > 1 and words[1].only in ("grep", "archive")


def _has(words: list[Arg], pattern: str) -> bool:
    """Whether one of the words is such an option, or may be."""
    return any(
        (arg.values is None and arg.may_be_option())
        or any(re.fullmatch(pattern, value, re.DOTALL) for value in arg.values or ())
        for arg in words
    )
