"""Makes shell lines at random: by a grammar, with tricks in it, and with a few characters changed."""

from __future__ import annotations

import random
from collections.abc import Callable

PROGRAMS = ("git", "rm", "touch", "cat", "alpha", "beta", "gamma", "tee", "make", "sort", "rg", "tar")
"""Stand-ins that only record how they were called."""
WORDS = (
    *(
        "a.txt",
        "b.txt",
        "sub",
        "-x",
        "--flag=1",
        "status",
        "push",
        "'q q'",
        '"d d"',
        "a\\ b",
        "''",
        '""',
        "a#b",
        "1",
        "+x",
        "@",
    ),
    *(
        '"$x"',
        "$x",
        "${x}",
        "${y:-d}",
        "${#x}",
        "$((1 + 2))",
        "$((i+1))",
        "*.txt",
        "s*",
        "?.txt",
        "[ab].txt",
        "{a,b}",
        "{1..3}",
    ),
    *(
        "~",
        "~/x",
        "$HOME",
        '"$PWD"',
        "$'t\\tt'",
        "$?",
        "$#",
        "\\;",
        "\\|",
        "'$(rm z)'",
        "\\$x",
        "a=b",
        "[",
        "]",
        "{}",
        "!",
        "it\\'s",
    ),
    *("-", "--", "%", "^", "é", "$", "a,b", "${x%.t}", "$1", '"$@"'),
)
OPTIONS = (
    "--output=o",
    "-o",
    "--pre=x",
    "-c",
    "--outp=o",
    "-uo",
    "-C",
    "--to-command=x",
    "xIf",
    "-I",
    "--exec=x",
    "-O",
    "SHELL=x",
)
JOINED = ('"$\\\n(rm z)"', "$\\\n(rm z)", '"a\\\nb"', "a\\\nb", "$x\\\ny", "E\\", "\\\n")
"""Escaped line ends, which bash removes before it looks at anything else."""
TRICKS = (
    *(
        "$(rm z)",
        "`rm z`",
        '"$(rm z)"',
        "<(rm z)",
        "${x:-$(rm z)}",
        "$((a[0]))",
        "${!x}",
        "${x@P}",
        "$[1]",
        '$"t"',
        "$'\\x72m'",
    ),
)
SPECIAL = "'\"\\$`(){};&|<>#\n\t *?[]!~=,-\r"
REDIRECTS = (
    "> o1",
    ">o2",
    ">> o3",
    "2>&1",
    "2> o4",
    "&> o5",
    ">| o6",
    "< a.txt",
    "<<< word",
    ">&2",
    "2>/dev/null",
    "> sub/o7",
    "3> o8",
    '> "$x"',
)
ASSIGNMENTS = (
    "x=--output=o",
    "x='a --output=o'",
    "x=1",
    "x=rm",
    'x="a b"',
    "i=3",
    "y=",
    "LANG=C",
    "x=$y",
    "x+=1",
    "x='-x'",
    "arr=(a b)",
)


class Maker:
    """Lines from one seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def line(self) -> str:
        made = self._list(2)
        if self._random.random() < 0.35:
            made = self._changed(made)
        return made

    def _one(self, *choices: str) -> str:
        return self._random.choice(choices)

    def _chance(self, share: float) -> bool:
        return self._random.random() < share

    def _changed(self, text: str) -> str:
        for _ in range(self._random.randint(1, 3)):
            at = self._random.randint(0, len(text))
            match self._random.randint(0, 2):
                case 0:
                    text = text[:at] + self._one(*SPECIAL) + text[at:]
                case 1:
                    text = text[:at] + text[at + 1 :]
                case _:
                    text = text[:at] + self._one(*SPECIAL) + text[at + 1 :]
        return text

    def _list(self, depth: int) -> str:
        made = self._command(depth)
        for _ in range(self._random.choice((0, 0, 1, 1, 2))):
            made += self._one(
                "; ", " && ", " || ", " | ", "\n", " & ", " |& ", " ;", "\n\n# note\n"
            ) + self._command(depth)
        return made

    def _command(self, depth: int) -> str:
        if depth and self._chance(0.35):
            return self._random.choice(self._compounds())(depth - 1)
        return self._simple(depth)

    def _compounds(self) -> tuple[Callable[[int], str], ...]:
        return (
            lambda depth: f"( {self._list(depth)} )",
            lambda depth: f"{{ {self._list(depth)}; }}",
            lambda depth: f"if {self._simple(0)}; then {self._list(depth)}; else {self._list(depth)}; fi",
            lambda depth: f"for x in {self._word()} {self._word()}; do {self._list(depth)}; done",
            lambda depth: f'for f in *.txt; do {self._simple(0)} "$f"; done',
            lambda depth: f"while false; do {self._list(depth)}; done",
            lambda depth: f"case {self._word()} in a*) {self._list(depth)};; *) {self._list(depth)};; esac",
            lambda depth: f"! {self._command(depth)}",
            lambda depth: f"[ -f a.txt ] && {self._command(depth)}",
            lambda depth: f"[[ $x == a* ]] || {self._command(depth)}",
            lambda depth: f"sh -c {self._quoted(self._list(depth))}",
            lambda depth: f"bash -c {self._quoted(self._list(depth))}",
            lambda depth: f"{self._wrapper()} {self._simple(0)}",
            lambda depth: f"cd sub && {self._command(depth)}",
            self._heredoc,
            lambda depth: f"{self._one('eval', 'command', 'exec', 'time', 'builtin')} {self._simple(0)}",
            lambda depth: f"fn() {{ {self._list(depth)}; }}; fn",
            lambda depth: f"trap {self._quoted(self._simple(0))} EXIT",
            lambda depth: f"export x={self._word()}; {self._command(depth)}",
            lambda depth: f"read x <<< {self._word()}; {self._command(depth)}",
            lambda depth: f"i=0; i=$((i+1)); {self._command(depth)}",
        )

    def _heredoc(self, depth: int) -> str:
        end = self._one("E", "-E", "'E'")
        return f"cat <<{end}\n" + self._one("", "", "E\\\n") + f"{self._word()}\nE\n{self._command(depth)}"

    def _wrapper(self) -> str:
        return self._one(
            "env",
            "env -i PATH=$PATH",
            "env A=1",
            "timeout 1",
            "timeout -s KILL 1",
            "nice",
            "nice -n 1",
            "nohup",
            "setsid",
            "stdbuf -o0",
            "xargs -0",
            "xargs -n 1",
            "xargs -I Z",
            "find . -maxdepth 0 -exec",
            "env -u A",
            "command",
            "time -p",
            "exec",
            "ls *.txt | xargs",
        )

    def _quoted(self, text: str) -> str:
        return "'" + text.replace("'", "'\\''") + "'" if self._chance(0.8) else '"' + text + '"'

    def _simple(self, depth: int) -> str:
        parts = []
        if self._chance(0.2):
            parts.append(self._one(*ASSIGNMENTS))
            if self._chance(0.4):
                return parts[0]
        parts.append(self._program())
        parts += [self._word() for _ in range(self._random.randint(0, 3))]
        if self._chance(0.3):
            parts.insert(self._random.randint(0, len(parts)), self._one(*REDIRECTS))
        return " ".join(parts) + self._one("", "", "", " \\;", " # note")

    def _program(self) -> str:
        name = self._one(*PROGRAMS)
        at = self._random.randint(0, len(name))
        if self._chance(0.75):
            return name
        return self._one(
            f"'{name}'",
            f'"{name}"',
            f"\\{name}",
            f"{name[:at]}''{name[at:]}",
            f'{name[:at]}""{name[at:]}',
            f"/tmp/stubs/{name}",
            f"$'{name}'",
            f"{name[:at]}$@{name[at:]}",
            f"{name[:at]}\\\n{name[at:]}",
            f"$x{name}",
            "$x",
            f"{{{name},a}}",
            f"{name[:-1]}?",
            "$(echo rm)",
        )

    def _word(self) -> str:
        if self._chance(0.06):
            return self._one(*TRICKS, *JOINED)
        word = self._one(*WORDS) if self._chance(0.95) else self._one(*OPTIONS)
        return word + self._one(*WORDS) if self._chance(0.12) else word
