"""Follows a line as the shell would, with every branch taken: variables, folders, and each command that may run."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from dragoman.policy.shell.limits import MAX_COMMANDS, MAX_FOLDERS, MAX_VALUES
from dragoman.policy.shell.programs.environment import runs_something
from dragoman.policy.shell.syntax.parts import (
    AndOr,
    Assignment,
    Background,
    Case,
    For,
    Group,
    If,
    Loop,
    Node,
    Pipeline,
    Redirect,
    Sequence,
    Simple,
    Test,
    Unreadable,
    Word,
)
from dragoman.policy.shell.values import (
    IS_NUMBER,
    NUMBER,
    SPECIAL,
    Arg,
    Scope,
    Values,
    expand,
    fixed,
    value_of,
)

_ROUNDS = 6
_STEPS = 8 * MAX_COMMANDS
_COMPARES = frozenset({"-eq", "-ne", "-lt", "-le", "-gt", "-ge"})
_READ_ONLY_OPERATORS = frozenset({"<", "<<", "<<-", "<<<", "<&"})

_PLAIN_TARGET = re.compile(r"[\w./+@%:,-]+")
"""A file after `>&` without anything that bash would expand: it does so a second time, quoted or not."""


@dataclass(frozen=True, slots=True)
class Target:
    """A redirection to a file, or from one."""

    operator: str
    descriptor: str
    target: Arg

    @property
    def writes(self) -> bool:
        return self.operator not in _READ_ONLY_OPERATORS

    @property
    def copies_descriptor(self) -> bool:
        return (
            self.operator in (">&", "<&") and re.fullmatch(r"[0-9]*-?", self.target.only or "x") is not None
        )

    @property
    def may_fail(self) -> bool:
        return self.target.only not in (("1", "2") if self.copies_descriptor else ("/dev/null",))

    def shown(self) -> str:
        return f"{self.descriptor}{self.operator}{self.target.text}"


@dataclass(slots=True)
class Call:
    """One command as it would run."""

    words: list[Arg]
    env: dict[str, str]
    targets: list[Target]
    scope: Scope
    feeds: bool = False
    """Reads what another command, a file or the line itself gives it."""


@dataclass(slots=True)
class Walker:
    """Calls `emit` for each command; reasons to call the line opaque are in `reasons`."""

    emit: Callable[[Call], None]
    reasons: list[str] = field(default_factory=list)
    count: int = 0
    steps: int = 0

    def walk(self, node: Node, scope: Scope, *, fed: bool = False) -> None:
        self.steps += 1
        if self.steps > _STEPS:
            raise Unreadable("loops that are nested too deeply")
        match node:
            case Simple():
                self._simple(node, scope, fed)
            case Sequence():
                for item in node.items:
                    self.walk(item, scope, fed=fed)
            case Pipeline():
                for index, item in enumerate(node.items):
                    inner = scope.copy()
                    self.walk(item, inner, fed=fed or index > 0)
                    scope.wrote = scope.wrote or inner.wrote
            case AndOr():
                self._and_or(node, scope, fed)
            case Background():
                self.walk(node.body, scope.copy(), fed=fed)
                scope.wrote = True
            case Group():
                inner = scope.copy() if node.subshell or node.redirects else scope
                self.walk(node.body, inner, fed=fed or bool(node.redirects))
                scope.wrote = scope.wrote or inner.wrote
                if node.redirects and not node.subshell:  # one that fails leaves the body out
                    scope.merge(inner)
                self._lone(node.redirects, scope)
            case For() | Loop():
                self._loop(node, scope, fed)
                self._lone(node.redirects, scope)
            case If():
                self._if(node, scope, fed)
                self._lone(node.redirects, scope)
            case Case():
                self._expand(node.subject, scope)
                for patterns, body in node.items:
                    for pattern in patterns:
                        self._expand(pattern, scope)
                    self._maybe(body, scope, fed)
                self._lone(node.redirects, scope)
            case Test():
                self._test(node, scope)
                self._lone(node.redirects, scope)

    # branches

    def _maybe(self, node: Node, scope: Scope, fed: bool) -> None:
        branch = scope.copy()
        self.walk(node, branch, fed=fed)
        scope.merge(branch)

    def _and_or(self, node: AndOr, scope: Scope, fed: bool) -> None:
        self.walk(node.items[0], scope, fed=fed)
        branch = scope.copy()
        before = node.items[0]
        skipped = False
        for operator, item in zip(node.operators, node.items[1:], strict=True):
            skipped = skipped or operator == "||"
            if skipped:  # any of the commands before may have been left out
                branch = scope.copy()
            else:
                self._moved_for_sure(before, branch)
            self.walk(item, branch, fed=fed)
            scope.merge(branch)
            before = item

    def _moved_for_sure(self, before: Node, branch: Scope) -> None:
        """After `cd x &&` the folder is x: had it failed, nothing would follow."""
        if isinstance(before, Simple) and before.words and before.words[0].plain == "cd":
            branch.folders = branch.variables.get(" moved")

    def _if(self, node: If, scope: Scope, fed: bool) -> None:
        start = scope.copy()
        for condition, body in node.branches:
            if condition is not None:
                self.walk(condition, start, fed=fed)
                scope.merge(start)
            branch = start.copy()
            self.walk(body, branch, fed=fed)
            scope.merge(branch)

    def _loop(self, node: For | Loop, scope: Scope, fed: bool) -> None:
        """The body until what is known no longer changes; commands that were seen in an earlier round are seen again."""
        fed = fed or bool(node.redirects)
        for _ in range(_ROUNDS):
            round_ = scope.copy()
            if isinstance(node, For):
                self._loop_variable(node, scope, round_)
            else:
                self.walk(node.condition, round_, fed=fed)
            self.walk(node.body, round_, fed=fed)
            before = scope.copy()
            scope.merge(round_)
            if scope.same(before):
                return
        raise Unreadable("a loop whose variables keep changing")

    def _loop_variable(self, node: For, scope: Scope, inner: Scope) -> None:
        args = [arg for word in node.words or () for arg in self._expand(word, scope)]
        known = node.words is not None and all(arg.values is not None for arg in args)
        values = tuple(dict.fromkeys(value for arg in args for value in arg.values or ()))
        self._assign(node.name, values if known and len(values) <= MAX_VALUES else None, inner)
        if any(arg.pattern for arg in args):
            inner.patterns = inner.patterns | {node.name}
        for arg in (
            args
        ):  # the names of files that are not in this folder are read, whatever the body does with them
            if arg.pattern and any(value.startswith("/") or ".." in value for value in arg.values or ("/",)):
                self.emit(Call([fixed(":"), arg], {}, [], scope))

    # commands

    def _simple(self, node: Simple, scope: Scope, fed: bool) -> None:
        self.count += 1
        if self.count > MAX_COMMANDS:
            raise Unreadable(f"more than {MAX_COMMANDS} commands")
        targets = [made for redirect in node.redirects if (made := self._target(redirect, scope)) is not None]
        words = [arg for word in node.words for arg in self._expand(word, scope)]
        if node.words and (node.words[0].fixed is None or words[0].only is None):
            self.reasons.append("the name of the program is an expansion")
        if not words:
            for assignment in node.assignments:
                self._assign(assignment.name, self._assigned(assignment, scope), scope)
        env = {} if not words else {each.name: self._shown(each, scope) for each in node.assignments}
        for name, value in env.items():
            self._check_name(name, (value,))
        feeds = fed or any(target.operator == "<" for target in targets) or len(targets) < len(node.redirects)
        self.emit(Call(words, {**scope.exported, **env}, targets, scope, feeds))

    def _shown(self, assignment: Assignment, scope: Scope) -> str:
        values = self._assigned(assignment, scope)
        if values is not None and len(values) == 1 and NUMBER not in values[0]:
            return values[0]
        return assignment.value.source if assignment.value is not None else "(…)"

    def _assigned(self, assignment: Assignment, scope: Scope) -> Values:
        if assignment.value is None or assignment.appends:
            if assignment.value is not None:
                value_of(assignment.value, scope)
            return None
        return value_of(assignment.value, scope)

    def _assign(self, name: str, values: Values, scope: Scope) -> None:
        self._check_name(name, values)
        if name in scope.constant:
            raise Unreadable(f"another value for {name}, which is read-only")
        scope.variables[name] = None if name in SPECIAL else values
        scope.patterns = scope.patterns - {name}

    def _check_name(self, name: str, values: Values) -> None:
        if runs_something(name, values):
            self.reasons.append(f"{name} changes what programs do")

    def _expand(self, word: Word, scope: Scope) -> list[Arg]:
        return expand(word, scope)

    # redirections and tests

    def _lone(self, redirects: list[Redirect], scope: Scope) -> None:
        targets = [made for redirect in redirects if (made := self._target(redirect, scope)) is not None]
        if targets:
            self.emit(Call([], {}, targets, scope))

    def _target(self, redirect: Redirect, scope: Scope) -> Target | None:
        """The file of a redirection; None for text that is in the line itself."""
        args = self._expand(redirect.target, scope) if redirect.operator not in ("<<", "<<-") else []
        if redirect.operator in ("<<", "<<-", "<<<"):
            return None
        if len(args) != 1:
            raise Unreadable("a redirection to several files")
        if redirect.target.source.startswith("!"):
            raise Unreadable("`>!`, which is another thing for zsh")
        if redirect.operator in (">&", "<&") and not _PLAIN_TARGET.fullmatch(args[0].only or ""):
            raise Unreadable("`>&` with more than a plain name, which bash expands twice")
        return Target(redirect.operator, redirect.descriptor, args[0])

    def _test(self, node: Test, scope: Scope) -> None:
        args = [arg for word in node.words for arg in self._expand_test(word, scope)]
        for index, arg in enumerate(args):
            if arg.only == "-v" or (arg.only == "-R"):
                self._check_identifier(args[index + 1 : index + 2])
            if arg.only in _COMPARES or arg.only == "-t":
                before = args[index - 1 : index] if arg.only != "-t" else []
                for side in (*before, *args[index + 1 : index + 2]):
                    if side.values is None or not all(IS_NUMBER.fullmatch(value) for value in side.values):
                        raise Unreadable(
                            "a comparison in [[ ]] with a value that is not known to be a number"
                        )

    def _expand_test(self, word: Word, scope: Scope) -> list[Arg]:
        values = value_of(word, scope)
        return [Arg(word.source, values)]

    def _check_identifier(self, args: list[Arg]) -> None:
        if any(arg.only is None or not arg.only.isidentifier() for arg in args):
            raise Unreadable("a variable named by an expression")


def move(scope: Scope, target: Arg | None) -> None:
    """`cd`: where relative paths begin from here on. A `cd` that may fail leaves both folders possible."""
    scope.variables[" moved"] = None
    if target is None:
        scope.folders = scope.variables[" moved"] = (scope.home,)
        return
    if target.values is None or target.pattern or scope.folders is None or target.only == "-":
        scope.folders = None
        return
    moved = {
        os.path.normpath(os.path.join(folder, value))  # noqa: PTH118
        for folder in scope.folders
        for value in target.values
    }
    # `cd nope/../sub` fails, although sub is there: bash looks at each step.
    asked = [os.path.join(folder, value) for folder in scope.folders for value in target.values]  # noqa: PTH118
    sure = all(os.path.isdir(place) and os.access(place, os.X_OK) for place in (*moved, *asked))  # noqa: PTH112
    both = tuple(sorted(moved)) if sure else tuple(sorted({*moved, *scope.folders}))
    scope.folders = both if len(both) <= MAX_FOLDERS else None
    scope.variables[" moved"] = tuple(sorted(moved)) if len(moved) <= MAX_FOLDERS else None
