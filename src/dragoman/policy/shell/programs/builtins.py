"""Builtins of the shell that later words depend on: folders, variables, settings."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

from dragoman.policy.shell.programs.environment import runs_something
from dragoman.policy.shell.programs.numbers import is_number, numbers_are_known
from dragoman.policy.shell.values import SPECIAL, Arg, Scope
from dragoman.policy.shell.walk import move

Reason: TypeAlias = Callable[[str], None]

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SET = re.compile(r"[-+][euxvfCbhm]+|[-+][euxvfCbhm]*o|pipefail|errexit|nounset|xtrace|--")


def run_builtin(program: str, rest: list[Arg], scope: Scope, reason: Reason) -> None:
    """Follow what a builtin does to the shell; programs that are none are left alone."""
    match program:
        case "cd" | "pushd":
            while rest and rest[0].only in ("--", "-L"):
                rest = rest[1:]
            move(scope, rest[0] if rest else None)
            numbered = rest and rest[0].text[:1] in ("+", "-")  # `cd +1` is of the stack for zsh
            if len(rest) > 1 or numbered or (program == "pushd" and not rest):
                scope.folders = None
        case "popd":
            scope.folders = None
        case "export" | "readonly" | "declare" | "local" | "typeset":
            _declare(program, rest, scope, reason)
        case "read":
            _read(rest, scope, reason)
        case "printf":
            first = rest[0] if rest else None
            if first is not None and (
                first.text.startswith("-v") or (first.only is None and first.may_be_option())
            ):
                if first.text.startswith("-v"):
                    _set_names(rest[1:2], scope, reason)
                if first.only != "-v" and len(rest) > 1:
                    reason("`printf` may set a variable")
                rest = rest[2:]
            if not numbers_are_known(rest[1:] if first is not None and first.only == "--" else rest, scope):
                reason("`printf` of a number that is not known to be one, which zsh evaluates")
        case "exit" | "return" | "break" | "continue" | "shift":
            if not all(is_number(arg, scope) for arg in rest):
                reason(f"`{program}` with a value that is not known to be a number, which zsh evaluates")
        case "unset":
            _set_names([arg for arg in rest if arg.only not in ("-v", "-f")], scope, reason)
        case "getopts":
            _set_names(rest[1:2], scope, reason)
        case "test" | "[":
            operands = [arg for arg in rest if arg.only != "]"]
            if any(arg.wild for arg in rest) or (len(operands) == 2 and operands[0].only is None):
                reason("an operator of `test` may come from an expansion")
            for index, arg in enumerate(rest):
                if arg.only in ("-v", "-R"):
                    _set_names(rest[index + 1 : index + 2], scope, reason)
                if arg.only == "-t" and not all(
                    is_number(each, scope) for each in operands[index + 1 : index + 2]
                ):
                    reason("`-t` with a value that is not known to be a number, which zsh evaluates")
        case "set":
            if not rest or not all(_SET.fullmatch(arg.only or "") for arg in rest):
                reason("`set` changes what later words mean")
        case "jobs" | "wait":
            if any(
                (arg.only or "-").startswith("-")
                for arg in rest
                if arg.values is None or arg.text.startswith("-")
            ):
                reason(f"`{program}` with an option")
        case _:
            pass


def _declare(program: str, rest: list[Arg], scope: Scope, reason: Reason) -> None:
    for arg in rest:
        text = arg.only if arg.only is not None else arg.prefix
        name, equals, value = text.partition("=")
        if text in ("-x", "-r", "-g") and arg.only is not None:
            continue
        if not _IDENTIFIER.fullmatch(name):
            reason(f"`{program}` of something that is not a plain name")
            continue
        if runs_something(name, (value,) if arg.only is not None else None):
            reason(f"{name} changes what programs do")
        if equals:
            sure = arg.only is not None and name not in SPECIAL and name not in scope.constant
            scope.variables[name] = (value,) if sure else None
        if program == "readonly" or any(other.only == "-r" for other in rest):
            scope.constant = scope.constant | {name}
        if program == "export" or any(other.only == "-x" for other in rest):
            scope.exported[name] = value if arg.only is not None else arg.text


def _read(rest: list[Arg], scope: Scope, reason: Reason) -> None:
    at = 0
    while at < len(rest) and (rest[at].only or "").startswith("-"):
        option = rest[at].text
        if not re.fullmatch(r"-[rs]*[rsptndNu]?", option):
            reason("`read` with an option that is not known")
        if option[-1] in "tnNu" and not all(is_number(arg, scope) for arg in rest[at + 1 : at + 2]):
            reason("`read` with a value that is not known to be a number, which zsh evaluates")
        at += 2 if option[-1] in "ptndNu" else 1
    _set_names(rest[at:], scope, reason)


def _set_names(args: list[Arg], scope: Scope, reason: Reason) -> None:
    """Names that a builtin gives values that are not known."""
    for arg in args:
        if arg.only is None or not _IDENTIFIER.fullmatch(arg.only):
            reason("a variable named by an expression")
            continue
        if runs_something(arg.only):
            reason(f"{arg.only} changes what programs do")
        scope.variables[arg.only] = None
