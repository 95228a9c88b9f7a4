"""Programs with a language of their own: git, sed, awk and interpreters. What they run or write is noted."""

from __future__ import annotations

import os
import re
from typing import TypeAlias

from dragoman.policy.act import Access, Effect
from dragoman.policy.shell.places import names_options
from dragoman.policy.shell.programs import files, scripts
from dragoman.policy.shell.programs.builtins import Reason
from dragoman.policy.shell.programs.git import words as git
from dragoman.policy.shell.programs.git.nested import is_doubtful
from dragoman.policy.shell.programs.options import PROGRAMS, effect
from dragoman.policy.shell.values import Arg, Scope, fixed
from dragoman.policy.shell.walk import move

_MOST_FOLDERS = 40
Pair: TypeAlias = tuple[Arg, Access]


INTERPRETERS: dict[str, tuple[str, ...]] = {
    "python": ("-c", "-i", "-"),
    "node": (
        "-e",
        "--eval",
        "-p",
        "--print",
        "-pe",
        "-i",
        "--interactive",
        "-r",
        "--require",
        "--import",
        "--loader",
        "--experimental-loader",
        "-",
    ),
    "nodejs": ("-e", "--eval", "-p", "--print", "-pe", "-i", "-r", "--require", "--import", "--loader", "-"),
    "deno": ("eval", "repl", "-"),
    "bun": ("-e", "--eval", "-p", "--print", "-r", "--preload", "repl", "exec", "x", "-"),
    "perl": ("-e", "-E", "-n", "-p", "-i", "-M", "-m", "-I", "-s", "-x", "-d", "-"),
    "ruby": ("-e", "-n", "-p", "-i", "-r", "-I", "-x", "-"),
    "php": ("-r", "-a", "-B", "-R", "-E", "-d", "-c", "-z", "-"),
    "lua": ("-e", "-l", "-i", "-"),
    "luajit": ("-e", "-l", "-i", "-b", "-"),
    "Rscript": ("-e", "-"),
    "R": ("-e", "-f"),
    "julia": ("-e", "-E", "-i", "-L", "-"),
    "groovy": ("-e", "-"),
    "scala": ("-e", "-"),
    "elixir": ("-e", "-r", "-S", "-"),
    "erl": ("-eval", "-s", "-run"),
    "guile": ("-c", "-l", "-e", "-"),
    "sbcl": ("--eval", "--load"),
    "ts-node": ("-e", "--eval", "-p", "--print", "-r", "-"),
    "tsx": ("-e", "--eval", "-p", "--print", "-r", "--import", "-"),
    "jshell": ("-",),
}
"""Options by which an interpreter runs code from the line, or from its input."""


def interpreter(program: str) -> str | None:
    """The name under which an interpreter is in the table: `python3.11` is `python`."""
    if program in INTERPRETERS:
        return program
    bare = re.sub(r"(?<=[a-z])[0-9.]+$", "", program)
    bare = {"pypy": "python", "ipython": "python"}.get(bare, bare)
    return bare if bare in INTERPRETERS else None


def check_interpreter(language: str, program: str, words: list[Arg], reason: Reason) -> None:
    """Whether an interpreter runs a file; code from the line or from its input is not understood."""
    runs = INTERPRETERS[language]
    script = False
    for arg in words:
        text = arg.only
        if text is None and arg.may_be_option():
            reason(f"an argument of `{program}` may be code")
            return
        if text is None or not text.startswith("-") or text == "-":
            script = text not in runs
            break
        if text in ("-m", "--version", "-V", "-v", "--help", "-h", "--test", "--check"):
            script = True
            if text == "-m":
                _check_module(words[words.index(arg) + 1 :], reason)
            break
        if text in runs or any(
            len(run) == 2 and not text.startswith("--") and run[1] in text[1:] for run in runs if run != "-"
        ):
            break
    if not script:
        reason(f"`{program}` runs code that is not a shell line")


def _check_module(words: list[Arg], reason: Reason) -> None:
    """`python -m pytest` takes the options of pytest."""
    module = words[0].only or "" if words else ""
    options = PROGRAMS.get(module)
    for arg in words[1:] if options is not None and module in ("pytest", "pip") else ():
        for value in arg.values or ():
            if options is not None and (found := effect(module, options, value)) is not None:
                reason(f"`{found.option}` makes `{module}` do more than it is known for")


def read_git(
    words: list[Arg],
    scope: Scope,
    workspace: str,
    effects: list[Effect],
    pairs: list[Pair],
    reason: Reason,
) -> tuple[list[Arg], Scope]:
    """Git's words without options that change nothing, and the folder that it works in."""
    at, before_git = 1, scope.folders or ()
    while at < len(words) and (words[at].only is None or words[at].text.startswith("-")):
        word = words[at].only
        if word == "-C" and at + 1 < len(words):
            scope = scope.copy()
            move(scope, words[at + 1])
            pairs.append((fixed("."), "read"))
            at += 2
            continue
        if word not in (*git.GLOBAL_FLAGS, "--version", "--help", "-v", "-h"):
            reason(f"`{words[at].text}` makes `git` use other settings or programs")
        at += 1
    if any(_is_bare_repository(folder) for folder in scope.folders or ()):
        reason("a folder with settings of `git` that are not in `.git`")
    if any(is_doubtful(folder, workspace) for folder in scope.folders or ()):
        reason("a repository inside the project with settings of its own that may run programs")
    subcommand = words[at].only if at < len(words) else ""
    arguments = words[at + 1 :]
    if subcommand and (found := git.subcommand_effect(subcommand, arguments)) is not None:
        effects.append(found)
    after_dashes = False
    for before, arg in zip([None, *arguments], arguments, strict=False):
        # `git grep -e -- -Ox`: after an option, the dashes may be its value.
        ends = arg.only == "--" and not (
            subcommand == "grep" and before is not None and before.may_be_option()
        )
        after_dashes = after_dashes or ends
        if not after_dashes and arg.only is None and names_options(arg, scope):
            reason("an argument of `git` may be an option")
        for value in arg.values or ():
            if not after_dashes and (option := git.option_effect(subcommand or "", value)) is not None:
                effects.append(option)
    if subcommand == "config" and (file := git.writes_config(arguments)) is not None:
        effects.append(Effect("git config", "writes"))
        pairs.append((fixed(scope.home + file[1:] if file.startswith("~") else file), "write"))
    if git.takes_template(subcommand, arguments):
        pairs.append((fixed(".git/hooks"), "write"))
    if not git.only_reads(subcommand) and subcommand:
        pairs += [(fixed(folder), "write") for folder in scope.folders or () if folder not in before_git]
    pairs += files.paths("git", arguments, effects)
    pairs += [(arg, "read") for arg in git.named_paths(arguments, scope)]
    return [words[0], *words[at:]], scope


def _is_bare_repository(folder: str) -> bool:
    """Whether git would take the folder itself, or one above, for a repository: its `config` may run programs."""
    for _ in range(_MOST_FOLDERS):
        if os.path.lexists(os.path.join(folder, ".git")):  # noqa: PTH118
            return False
        if os.path.lexists(os.path.join(folder, "HEAD")) and os.path.isdir(os.path.join(folder, "refs")):  # noqa: PTH112, PTH118
            return True
        above = os.path.dirname(folder)  # noqa: PTH120
        if above == folder:
            return False
        folder = above
    return True


def check_sed(
    words: list[Arg], scope: Scope, effects: list[Effect], pairs: list[Pair], reason: Reason
) -> None:
    found = scripts.read_sed(words)
    for text in found.reasons:
        reason(text)
    for arg in found.files:
        if names_options(arg, scope):
            reason("an argument of `sed` may be an option")
    for script in found.scripts:
        if script.only is None or not scripts.sed_only_prints(script.only):
            reason("a script of `sed` that may write or run")
    if found.in_place:
        effects.append(Effect("-i", "writes"))
    pairs += [(arg, "read") for arg in found.files]
    pairs += [(arg, "write") for arg in found.files if found.in_place]


def check_awk(words: list[Arg], scope: Scope, pairs: list[Pair], reason: Reason) -> None:
    found = scripts.read_awk(words)
    for text in found.reasons:
        reason(text)
    for script in found.scripts:
        if script.only is None or not scripts.awk_only_prints(script.only):
            reason("a program of `awk` that may write or run")
    for arg in found.files:
        if names_options(arg, scope):
            reason("an argument of `awk` may be an option")
    pairs += [(arg, "read") for arg in found.files]
