"""One command to facts: looks through wrappers and shells, and asks the tables about the program and its options."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from msgspec.structs import replace

from dragoman.policy.act import Access, Command, Effect, PathFact
from dragoman.policy.shell.limits import MAX_DEPTH, MAX_LOOKUPS
from dragoman.policy.shell.patterns import leads_out
from dragoman.policy.shell.places import (
    facts_of,
    folders_outside,
    names_options,
    words_that_are_files,
)
from dragoman.policy.shell.programs import files, network
from dragoman.policy.shell.programs.builtins import run_builtin
from dragoman.policy.shell.programs.depth import files_and_folders
from dragoman.policy.shell.programs.environment import runs_something
from dragoman.policy.shell.programs.languages import (
    check_awk,
    check_interpreter,
    check_sed,
    interpreter,
    read_git,
)
from dragoman.policy.shell.programs.names import names
from dragoman.policy.shell.programs.options import OPAQUE_PROGRAMS, PROGRAMS, Options, effect
from dragoman.policy.shell.programs.runners import inner_commands
from dragoman.policy.shell.programs.targets import further_targets
from dragoman.policy.shell.programs.unpack import TARS, with_dash
from dragoman.policy.shell.programs.wrappers import WRAPPERS, XARGS, NotSeenThrough, unwrap
from dragoman.policy.shell.syntax.parts import Unreadable
from dragoman.policy.shell.values import Arg, Scope, fixed, unknown
from dragoman.policy.shell.walk import Call, move

SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash", "mksh", "rbash"})
_PLAIN_SHELLS = frozenset({"sh", "dash", "ash"})
_BASH_ONLY = re.compile(
    r"\{[^}{]{0,200}(?:,|\.\.)|\$'|\[\[|<<<|\|&|&>|<\(|>\(|\(\(|\+?=\(|\+=|\bfunction\b|\bselect\b|\bsource\b|\$\{"
)
"""Words that only bash knows: what `sh` is differs between machines."""
_SYSTEM = frozenset(
    {"/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin", "/usr/local/sbin", "/opt/homebrew/bin"}
)
_NEUTRAL = names(
    """
    cd pushd popd : true false test [ exit return break continue shift wait set unset export readonly declare
    local typeset read umask times
    """
)
"""Builtins that change only the shell itself: no rule has to allow them."""
_SHELL_WRAPPERS = frozenset({"command", "builtin", "time"})
"""Wrappers behind which a builtin is still one."""
_SHELL_OPTION = re.compile(r"-[celiuxv]*c[celiuxv]*")


@dataclass(slots=True)
class Collector:
    """The facts of a line, as its commands are seen one by one."""

    workspace: str
    script: Callable[[str, Scope, int], None]
    """Reads the script of `sh -c`."""
    commands: list[Command] = field(default_factory=list)
    wrappers: list[Command] = field(default_factory=list)
    paths: list[PathFact] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    depth: int = 0
    lookups: int = 0
    ways_out: dict[str, bool] = field(default_factory=dict)

    def add(self, call: Call) -> None:
        if not call.words:
            self.paths += self._redirected(call)
            if any(target.writes for target in call.targets):
                call.scope.wrote = True
            return
        self._program(call, call.words, dict(call.env), call.scope, by_shell=True)

    # the program

    def _program(
        self, call: Call, words: list[Arg], env: dict[str, str], scope: Scope, *, by_shell: bool = False
    ) -> None:
        """`by_shell`: builtins are meant. `nice cd x` starts a program, and the shell stays where it is."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Unreadable("commands inside commands, too deep")
        try:
            self._named(call, words, env, scope, by_shell)
        finally:
            self.depth -= 1

    def _named(self, call: Call, words: list[Arg], env: dict[str, str], scope: Scope, by_shell: bool) -> None:
        for name, value in env.items():
            if runs_something(name, (value,)):
                self._reason(f"{name} changes what programs do")
        named = words[0].only
        if not named:
            self._reason("the name of the program is an expansion")
            self._record(call, words, env, scope, "")
            return
        program = named.rpartition("/")[2]
        if not program:
            self._reason(f"`{named}` is no program")
        if program in WRAPPERS and self._through(call, program, words, env, scope, by_shell):
            return
        if program == "xargs":
            self._xargs(call, words, env, scope)
        elif program == "find":
            self._find(call, words, env, scope)
        elif program in SHELLS:
            self._shell(call, program, words, env, scope)
        else:
            if program in OPAQUE_PROGRAMS:
                self._reason(f"`{program}` runs, or changes the meaning of, what cannot be seen here")
            self._record(call, words, env, scope, program)
            if by_shell and named == program:
                before = scope.copy()
                run_builtin(program, words[1:], scope, self._reason)
                if any(target.may_fail for target in call.targets):  # then the builtin does not run
                    scope.merge(before)

    def _reason(self, text: str) -> None:
        self.reasons.append(text)

    # looking through

    def _through(
        self,
        call: Call,
        program: str,
        words: list[Arg],
        env: dict[str, str],
        scope: Scope,
        by_shell: bool,
    ) -> bool:
        """Whether the command was one that the wrapper runs."""
        wrapper = WRAPPERS[program]
        if program == "command" and any(re.fullmatch(r"-p?[vV]p?", arg.only or "") for arg in words[1:2]):
            return False
        if program == "exec" and len(words) == 1:
            scope.wrote = True
            return False
        try:
            found = unwrap(program, wrapper, words[1:])
        except NotSeenThrough as error:
            self._reason(str(error))
            return False
        if not found.inner:
            return False
        here = self._command(call, words, env, scope, program, Options(prints=False), [])
        (self.wrappers if wrapper.transparent else self.commands).append(here)
        inner_scope = scope
        if found.folder is not None:
            inner_scope = scope.copy()
            move(inner_scope, found.folder)
        by_shell = by_shell and program in _SHELL_WRAPPERS and words[0].only == program
        self._program(call, found.inner, {**env, **found.env}, inner_scope, by_shell=by_shell)
        return True

    def _xargs(self, call: Call, words: list[Arg], env: dict[str, str], scope: Scope) -> None:
        try:
            found = unwrap("xargs", XARGS, words[1:])
        except NotSeenThrough as error:
            self._reason(str(error))
            self._record(call, words, env, scope, "xargs")
            return
        self.wrappers.append(self._command(call, words, env, scope, "xargs", Options(), []))
        told = found.values or {}
        marker = told.get("I") or told.get("replace")
        if marker is not None and len(told.keys() & {"I", "replace", "n", "L", "max-args", "max-lines"}) > 1:
            self._reason("options of `xargs` of which the last one counts")
        inner = found.inner or [fixed("echo")]
        if marker is None:
            self._program(call, [*inner, unknown("(from input)")], env, scope)
        elif not marker.only:
            self._reason("an expansion before the command that `xargs` runs")
        else:
            mark = marker.only
            replaced = [
                Arg(arg.text, None, arg.text.partition(mark)[0])
                if mark in arg.text or any(mark in value for value in arg.values or ())
                else arg
                for arg in inner
            ]
            self._program(call, replaced, env, scope)

    def _find(self, call: Call, words: list[Arg], env: dict[str, str], scope: Scope) -> None:
        found = files.read_find(words[1:])
        self.reasons += found.reasons
        for arg in words[1:]:
            if names_options(arg, scope) and arg.only is None:
                self._reason("an argument of `find` may be an action")
        found.roots = found.roots or [fixed(".")]
        access: Access = "write" if found.deletes else "read"
        pairs: list[tuple[Arg, Access]] = [
            (replace(root, found=True, names=found.names) if found.deletes else root, access)
            for root in found.roots
        ]
        pairs += [(arg, "write") for arg in found.written]
        pairs += [(arg, "read") for arg in found.compared]
        effects = [Effect(option, "writes") for option in found.writes]
        command = self._command(call, words, env, scope, "find", Options(), pairs, effects)
        (self.wrappers if found.inner and not effects else self.commands).append(command)
        for inner, in_place in found.inner:
            if not inner or "{}" in inner[0].text:
                self._reason("`find` runs something that is not named")
                continue
            replaced = [self._found(arg, found, scope, in_place=in_place) for arg in inner]
            self._program(call, replaced, env, scope)
        scope.wrote = scope.wrote or bool(effects)

    def _found(self, arg: Arg, found: files.Find, scope: Scope, *, in_place: bool) -> Arg:
        """An argument of `find -exec`, where `{}` is a path below one of the roots, or what a link there leads to."""
        if "{}" not in arg.text:
            return arg
        values = tuple(value for root in found.roots for value in root.values or ())
        known = all(root.values is not None for root in found.roots) and scope.folders is not None
        places = [os.path.join(folder, value) for folder in scope.folders or () for value in values]  # noqa: PTH118
        whole = known and not in_place and arg.text == "{}"
        if whole and not any(self._leads_out(place, scope) for place in places):
            return Arg(arg.text, values, found=True, names=found.names)
        return Arg(arg.text, None, arg.text.partition("{}")[0] or ("./" if known else ""))

    def _shell(self, call: Call, program: str, words: list[Arg], env: dict[str, str], scope: Scope) -> None:
        self.wrappers.append(self._command(call, words, env, scope, program, Options(prints=False), []))
        at = 1
        while at < len(words) and (option := words[at].only) is not None and option.startswith("-"):
            if _SHELL_OPTION.fullmatch(option):
                script = words[at + 1].only if at + 1 < len(words) else None
                if script is None:
                    break
                if program not in ("bash", "rbash") and (
                    program not in _PLAIN_SHELLS or _BASH_ONLY.search(script)
                ):
                    self._reason(f"`{program}` may read this script differently")
                inner = scope.copy()
                inner.variables = {name: None for name in inner.variables if name != " moved"}
                self.script(script, inner, self.depth)
                scope.wrote = True
                return
            if not re.fullmatch(r"-[elux]+|--norc|--noprofile|--posix|--login", option):
                break
            at += 1
        wrapped = self.wrappers.pop()
        if at < len(words) and words[at].only is not None and not words[at].text.startswith("-"):
            self._record(call, words, env, scope, program)
            return
        self._reason(f"`{program}` runs what it reads or what an expansion names")
        self.commands.append(wrapped)

    # recording

    def _record(self, call: Call, words: list[Arg], env: dict[str, str], scope: Scope, program: str) -> None:
        for part in (words, *further_targets(program, words)):
            self._record_one(call, part, env, scope, program)
        for inner in inner_commands(program, words):
            named = (inner[0].only or "").rpartition("/")[2]
            self.wrappers.append(self._command(call, inner, env, scope, named, Options(prints=False), []))

    def _record_one(
        self, call: Call, words: list[Arg], env: dict[str, str], scope: Scope, program: str
    ) -> None:
        options = PROGRAMS.get(program)
        effects: list[Effect] = []
        pairs: list[tuple[Arg, Access]] = []
        compared = words
        if program == "git":
            compared, scope = read_git(words, scope, self.workspace, effects, pairs, self._reason)
            options = Options()
        elif program in ("sed", "gsed"):
            check_sed(words[1:], scope, effects, pairs, self._reason)
            options = Options()
        elif program in ("awk", "gawk", "mawk", "nawk"):
            check_awk(words[1:], scope, pairs, self._reason)
            options = Options()
        elif (language := interpreter(program)) is not None:
            check_interpreter(language, program, words[1:], self._reason)
            pairs += files.paths(program, words[1:])
        else:
            if program in TARS and len(words) > 1 and words[1].only is None:
                self._reason("the first word of `tar` may be options")
            if options is not None:
                self._effects(program, options, with_dash(program, words[1:]), effects, scope)
            pairs += files.paths(program, words[1:], effects)
        if any(one.does == "runs" for one in effects):
            option = next(one.option for one in effects if one.does == "runs")
            self._reason(f"`{option}` makes `{program}` run something")
        command = self._command(
            call, words, env, scope, program, options or Options(prints=False), pairs, effects, compared
        )
        self.commands.append(command)
        if options is None or any(path.access == "write" for path in command.paths) or not options.prints:
            call.scope.wrote = True

    def _command(
        self,
        call: Call,
        words: list[Arg],
        env: dict[str, str],
        scope: Scope,
        program: str,
        options: Options,
        pairs: list[tuple[Arg, Access]],
        effects: list[Effect] | None = None,
        compared: list[Arg] | None = None,
    ) -> Command:
        compared = words if compared is None else compared
        folder, _, _ = (words[0].only or "").rpartition("/")
        self._count(words, scope)
        paths = files_and_folders(program, words, compared, pairs, scope, self.workspace)
        paths += self._redirected(call)
        access: Access = "read" if options.prints else "write"
        paths += folders_outside(scope, access, self.workspace)
        plain = program not in files.NO_FILES
        paths += words_that_are_files(words[1:], scope, self.workspace, access, plain=plain)
        if files.follows_links(program, words[1:]) and self._has_way_out(scope):
            paths.append(PathFact("(through links)", "read", outside=True))
        names = (program, *(arg.only if arg.only is not None else arg.text for arg in compared[1:]))
        known = next(
            (index for index, arg in enumerate(compared) if index and arg.only is None), len(compared)
        )
        return Command(
            words=tuple(arg.text for arg in words),
            names=names,
            known=known,
            unknown=tuple(
                index for index, arg in enumerate(words) if arg.only is None or arg.only != arg.text
            ),
            env=env,
            redirects=tuple(target.shown() for target in call.targets),
            effects=tuple(effects or ()),
            paths=tuple(dict.fromkeys(paths)),
            hosts=tuple(dict.fromkeys(network.hosts(program, words[1:]))),
            trusted_program=not folder or folder in _SYSTEM,
            prints=options.prints,
            neutral=program in _NEUTRAL and not folder,
        )

    def _count(self, words: list[Arg], scope: Scope) -> None:
        """Each value of each word may be looked up in each folder."""
        self.lookups += sum([len(arg.values or ()) for arg in words]) * len(scope.folders or ("",))
        if self.lookups > MAX_LOOKUPS:
            raise Unreadable(f"more than {MAX_LOOKUPS} names of files")

    def _has_way_out(self, scope: Scope) -> bool:
        """Whether links in the folders of the line may lead out of the workspace; only a small tree is searched."""
        return scope.folders is None or any(self._leads_out(folder, scope) for folder in scope.folders)

    def _leads_out(self, folder: str, scope: Scope) -> bool:
        """Searched once for a line, however many of its commands ask."""
        if folder not in self.ways_out:
            self.ways_out[folder] = leads_out(folder, self.workspace, scope.looks)
        return self.ways_out[folder]

    def _redirected(self, call: Call) -> list[PathFact]:
        found: list[PathFact] = []
        for target in call.targets:
            if target.copies_descriptor:
                continue
            text = target.target.only or target.target.prefix
            if text.startswith(("/dev/tcp/", "/dev/udp/")):
                self._reason("a connection opened by a redirection")
            if target.target.pattern:
                self._reason("a redirection to a pattern")
            access: Access = "write" if target.writes else "read"
            found += facts_of(target.target, access, call.scope, self.workspace)
        return found

    def _effects(
        self, program: str, options: Options, words: list[Arg], effects: list[Effect], scope: Scope
    ) -> None:
        strict = bool(options.writes or options.runs or options.words)
        dashes = False
        for before, arg in zip([None, *words], words, strict=False):
            # `rg -e -- --pre=x`: after an option, the dashes may be its value.
            dashes = dashes or (arg.only == "--" and not (before is not None and before.may_be_option()))
            rest = Options(words=options.words) if dashes else options
            for value in arg.values or ():
                if not arg.pattern and (found := effect(program, rest, value)) is not None:
                    effects.append(Effect(arg.text, found.does) if program in TARS else found)
            if options.assigns and (arg.values is None or arg.pattern):
                self._reason(f"an argument of `{program}` may set a variable")
            elif (
                strict
                and not (dashes and not options.words)
                and arg.only is None
                and names_options(arg, scope)
            ):
                self._reason(f"an argument of `{program}` may be an option")
