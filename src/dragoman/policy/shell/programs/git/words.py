"""What git does beyond its name: options that run programs, subcommands that write, settings that do both."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from dragoman.policy.act import Effect
from dragoman.policy.shell.programs.names import names
from dragoman.policy.shell.programs.options import Options, effect
from dragoman.policy.shell.values import Arg, Scope, fixed

GLOBAL_FLAGS = frozenset(
    {
        "--no-pager",
        "-P",
        "--no-optional-locks",
        "--literal-pathspecs",
        "--no-replace-objects",
        "--no-lazy-fetch",
        "--no-advice",
    }
)
"""Options before the subcommand that change nothing about what it may do."""

_ANY = Options(
    writes=("--output", "-o", "--output-directory"),
    runs=(
        *(
            "--ext-diff",
            "--textconv",
            "--open-files-in-pager",
            "-O",
            "--upload-pack",
            "-u",
            "--receive-pack",
            "--exec",
            "-x",
        ),
        *(
            "--config",
            "-c",
            "--template",
            "--ext-grep",
            "--extcmd",
            "--run",
            "--filter",
            "--signoff-cmd",
            "--tool",
        ),
    ),
)
_RUNS_ONLY = Options(
    writes=("--output",),
    runs=(
        "--ext-diff",
        "--textconv",
        "--open-files-in-pager",
        "--upload-pack",
        "--receive-pack",
        "--exec",
        "--extcmd",
        "--ext-grep",
    ),
)
_SHORT = {
    "init": _ANY,
    "cat-file": Options(runs=("--textconv", "--filters")),
    "grep": Options(writes=("--output",), runs=("-O", "--open-files-in-pager", "--ext-grep", "--textconv")),
    "clone": _ANY,
    "rebase": _ANY,
    "difftool": _ANY,
    "archive": Options(writes=("-o", "--output"), runs=("--exec", "--remote")),
    "format-patch": Options(
        writes=("-o", "--output-directory", "--output"), runs=("--ext-diff", "--textconv")
    ),
}
_RUNNERS = names(
    """
    bisect submodule filter-branch filter-repo difftool mergetool shell daemon send-email gui gitk instaweb
    credential hook for-each-repo maintenance upload-pack receive-pack http-backend cvsserver p4 svn
    request-pull web--browse
    """
)
_NEUTRAL = re.compile(
    r"--(?:local|global|system|worktree|null|name-only|show-origin|show-scope|includes|bool|int|path|type=\w+|default=.*)|-z"
)
"""Options of `git config` that say where to look and how to print."""


def option_effect(subcommand: str, word: str) -> Effect | None:
    """What an argument of a subcommand runs or writes."""
    return effect("git", _SHORT.get(subcommand, _RUNS_ONLY), word)


def subcommand_effect(subcommand: str, arguments: list[Arg]) -> Effect | None:
    """What a subcommand runs besides git itself."""
    if subcommand in _RUNNERS and not (subcommand in ("bisect", "submodule") and _harmless_sub(arguments)):
        return Effect(f"git {subcommand}", "runs")
    for argument in arguments:
        text = argument.only or argument.prefix
        if "::" in text and re.match(r"[a-z0-9-]+::", text):
            return Effect(text, "runs")  # a remote helper: ext:: runs a command
    return None


def _harmless_sub(arguments: list[Arg]) -> bool:
    return bool(arguments) and arguments[0].only in (
        "log",
        "status",
        "summary",
        "view",
        "terms",
        "start",
        "good",
        "bad",
        "reset",
    )


def writes_config(arguments: list[Arg]) -> str | None:
    """The file that `git config` changes, relative to the repository or the home; None if it only reads."""
    words = [argument.only or "" for argument in arguments]
    flags = [word for word in words if word.startswith("-") and not _NEUTRAL.fullmatch(word)]
    plain = [word for word in words if not word.startswith("-")]
    asks = [flag for flag in flags if flag.startswith("--get") or flag in ("--list", "-l")]
    reads = bool(asks) or plain[:1] in (["get"], ["list"]) or len(plain) == 1
    if reads and len(asks) == len(flags):
        return None
    return (
        "~/.gitconfig" if "--global" in words else "/etc/gitconfig" if "--system" in words else ".git/config"
    )


_IN_REVISION = re.compile(r"[^:]*:(?:[0-3]:)?(?!/)(.+)", re.DOTALL)
_MOST_FOLDERS = 40


def named_paths(arguments: list[Arg], scope: Scope) -> Iterator[Arg]:
    """Files that look like none: those after `--`, and those of a revision, `HEAD:key.pem` and `-L1,5:key.pem`."""
    after_dashes = False
    for arg in arguments:
        if after_dashes:
            yield arg
        after_dashes = after_dashes or arg.only == "--"
        for value in arg.values or ():
            if "://" in value or (found := _IN_REVISION.fullmatch(value)) is None:
                continue
            for folder in scope.folders or ():
                base = folder if found[1].startswith(("./", "../")) else _top(folder)
                yield fixed(os.path.join(base, found[1].rpartition(":")[2]))  # noqa: PTH118


def _top(folder: str) -> str:
    """The folder that paths of a revision begin in."""
    place = folder
    for _ in range(_MOST_FOLDERS):
        if os.path.lexists(os.path.join(place, ".git")):  # noqa: PTH118
            return place
        above = os.path.dirname(place)  # noqa: PTH120
        if above == place:
            break
        place = above
    return folder


_READERS = names(
    """
    status diff log show grep blame ls-files ls-tree ls-remote rev-parse rev-list describe cat-file shortlog reflog
    show-ref merge-base diff-tree diff-index diff-files for-each-ref name-rev var version help count-objects fsck
    whatchanged cherry annotate check-ignore check-attr
    """
)


def only_reads(subcommand: str | None) -> bool:
    """Whether a subcommand leaves the repository and its files as they are."""
    return subcommand in _READERS


def takes_template(subcommand: str | None, arguments: list[Arg]) -> bool:
    """Whether hooks are copied into a repository."""
    return subcommand == "init" and any((arg.only or arg.prefix).startswith("--te") for arg in arguments)
