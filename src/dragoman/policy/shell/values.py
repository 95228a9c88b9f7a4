"""Values of words: what a word can be when the line runs, as far as that is known before it does."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from msgspec import Struct

from dragoman.policy.shell.limits import MAX_FOLDERS, MAX_VALUES
from dragoman.policy.shell.real_paths import Looks
from dragoman.policy.shell.syntax.parts import Piece, Unreadable, Word

Values = tuple[str, ...] | None
"""All values that something may have; None if they are not known."""

NUMBER = "\ue000"
"""Stands, in a value, for digits that are not known."""
IS_NUMBER = re.compile(rf"-?[0-9{NUMBER}]+")

_SPECIAL = re.compile(r"[*?\[{]|^~|[=:]~")
_PATTERN = re.compile(r"[*?\[]")
_LATER_TILDE = re.compile(r"[=:]~")
_SPLITS = re.compile(r"[\s*?\[\\]|^$")
_NUMBERS = frozenset({"?", "#", "$", "!"})
_SEQUENCE = re.compile(r"(-?[0-9]{1,6})\.\.(-?[0-9]{1,6})|([a-z])\.\.([a-z])|([A-Z])\.\.([A-Z])")


SPECIAL = frozenset(
    {
        *(
            "_",
            "UID",
            "EUID",
            "PPID",
            "RANDOM",
            "SRANDOM",
            "SECONDS",
            "LINENO",
            "HISTCMD",
            "OPTIND",
            "OPTARG",
        ),
        *("REPLY", "EPOCHSECONDS", "EPOCHREALTIME", "DIRSTACK", "GROUPS", "FUNCNAME", "PIPESTATUS", "SHLVL"),
        *("HOSTNAME", "MACHTYPE", "OSTYPE", "HOSTTYPE", "COLUMNS", "LINES", "COMP_WORDBREAKS", "COPROC"),
    }
)
"""Variables whose value the shell chooses, whatever is assigned to them."""
_BRACES = 64
"""Braces of one word: what they stand for takes time that grows with the square of their number."""
_VARIABLES = frozenset({"variable", "quoted_variable"})
_MODIFIER = re.compile(r":[A-Za-z&]|\[")
_SUBSCRIPT = re.compile(r"\[[\w,^.+ -]*\]")
_CHANGES = re.compile(r"(?<![=!<>])=(?!=)|\+\+|--|<<=|>>=")


class Arg(Struct, frozen=True):
    """One word of a command. `text` is for people; `values` and `prefix` are what can be relied on."""

    text: str
    values: Values
    prefix: str = ""
    """What an unknown value begins with."""
    splits: bool = False
    """May be several words, or none: an unquoted expansion whose value is not known."""
    wild: bool = False
    """Several words, chosen by something in the line itself: an unquoted variable that the line fills."""
    pattern: bool = False
    """The value is a pattern that the shell replaces by names of files."""
    found: bool = False
    """Stands for each file below the folder that is its value: `{}` of `find -exec`."""
    names: tuple[str, ...] = ()
    """Of what is found: only files with names like these patterns; empty: any."""

    @property
    def only(self) -> str | None:
        """The value, if there is one that is known."""
        return (
            self.values[0] if self.values is not None and len(self.values) == 1 and not self.pattern else None
        )

    def may_be_option(self) -> bool:
        if self.values is None:
            return self.splits or not self.prefix or self.prefix.startswith("-")
        return any(value.startswith("-") for value in self.values)


def fixed(text: str) -> Arg:
    return Arg(text, (text,))


def unknown(text: str) -> Arg:
    return Arg(text, None)


@dataclass(slots=True)
class Scope:
    """What is known at one place of the line: variables, and the folders that it may be in."""

    variables: dict[str, Values]
    folders: Values
    exported: dict[str, str]
    home: str
    wrote: bool = False
    """Something that ran before may have made files whose names are options."""
    patterns: frozenset[str] = frozenset()
    """Variables whose values are patterns, which stand for names of files: those of a loop over files."""

    constant: frozenset[str] = frozenset()
    """Variables that are read-only: a later assignment fails, and the line goes on."""

    looks: Looks = field(default_factory=Looks)
    """Those of the whole line."""

    def copy(self) -> Scope:
        return Scope(
            dict(self.variables),
            self.folders,
            dict(self.exported),
            self.home,
            self.wrote,
            self.patterns,
            self.constant,
            self.looks,
        )

    def merge(self, other: Scope) -> None:
        """What is known when either of the two may have happened."""
        for name in {*self.variables, *other.variables}:
            ours, theirs = self.variables.get(name), other.variables.get(name)
            self.variables[name] = _union(ours, theirs, MAX_VALUES)
        self.folders = _union(self.folders, other.folders, MAX_FOLDERS)
        self.exported.update(other.exported)
        self.wrote = self.wrote or other.wrote
        self.patterns = self.patterns | other.patterns
        self.constant = self.constant | other.constant

    def same(self, other: Scope) -> bool:
        return self.variables == other.variables and self.folders == other.folders

    def value(self, name: str) -> Values:
        if name in self.variables:
            return self.variables[name]
        if name in _NUMBERS:
            return (NUMBER,)
        if name == "HOME":
            return (self.home,)
        if name == "PWD":
            return self.folders
        return None


def _union(ours: Values, theirs: Values, most: int) -> Values:
    if ours is None or theirs is None:
        return None
    both = tuple(dict.fromkeys((*ours, *theirs)))
    return both if len(both) <= most else None


def expand(word: Word, scope: Scope) -> list[Arg]:
    """The words that a word becomes: several after brace expansion."""
    plain = word.plain
    if plain is not None and plain[:1] == "=" and plain[1:2].isalnum() and word.source[:1] == "=":
        return [Arg(plain, None, "=")]  # `=id` is the path of that program for zsh
    if plain is not None and (plain in ("[", "{", "}") or not _SPECIAL.search(plain)):
        return [Arg(plain, (plain,))]
    if "{" in word.source and any(piece.kind == "variable" for piece in word.pieces) and _spreads(word):
        raise Unreadable("braces beside a variable")  # they come first: `$x{1,2}` is `$x1 $x2`
    spread = [pieces for pieces in _braces(_exploded(word.pieces)) if pieces]  # `{,b}` is b alone
    if len(spread) > MAX_VALUES:
        raise Unreadable("a brace expansion of many words")
    return [_evaluate(pieces, word.source if len(spread) == 1 else "", scope) for pieces in spread]


def _spreads(word: Word) -> bool:
    raw = "".join(piece.text for piece in word.pieces if piece.kind == "raw")
    return "{" in raw and "}" in raw and ("," in raw or ".." in raw)


def value_of(word: Word, scope: Scope) -> Values:
    """The values of a word where the shell neither splits it nor replaces patterns: in an assignment."""
    pieces = [
        Piece("quoted_variable" if piece.kind == "variable" else piece.kind, piece.text)
        for piece in word.pieces
    ]
    if any(piece.kind == "raw" and "~" in piece.text for piece in pieces):
        return None
    return _evaluate(pieces, word.source, scope, patterns=False).values


def check_arithmetic(text: str, scope: Scope) -> None:
    """Names in arithmetic are evaluated again as arithmetic, which may run commands: they must be numbers."""
    for name in dict.fromkeys(re.findall(r"[A-Za-z_][A-Za-z0-9_]*", text)):
        if re.search(rf"\b0[xX]?{name}\b", text):
            continue
        values = scope.value(name)
        if _CHANGES.search(text):
            scope.variables[name] = (NUMBER,)
        if values is None or not all(IS_NUMBER.fullmatch(value) for value in values):
            raise Unreadable("arithmetic with a value that is not known to be a number")


def _evaluate(pieces: list[Piece], source: str, scope: Scope, *, patterns: bool = True) -> Arg:
    options: list[tuple[str, ...]] = []
    known, pattern = True, False
    for index, piece in enumerate(pieces):
        if piece.kind in _VARIABLES:
            _check_subscript(piece, pieces[index + 1 : index + 2], scope, patterns)
        values, is_pattern = _piece(piece, scope, first=index == 0 and patterns, alone=len(pieces) == 1)
        pattern = pattern or (is_pattern and patterns)
        if values is None or (piece.kind in _VARIABLES and _is_modified(pieces[index + 1 : index + 2])):
            known = False
            break
        options.append(values)
    made = ["".join(parts) for parts in itertools.islice(itertools.product(*options), MAX_VALUES + 1)]
    if known and patterns and any(NUMBER in value for value in made):
        prefixes = {value.partition(NUMBER)[0] for value in made}
        return Arg(source, None, (prefixes.pop() or "0") if len(prefixes) == 1 and not pattern else "")
    if known and len(made) <= MAX_VALUES:
        text = made[0] if len(made) == 1 else source
        return Arg(text, tuple(dict.fromkeys(made)), pattern=pattern)
    prefix = made[0] if len(made) == 1 and not pattern else ""
    wild = any(piece.kind == "variable" and piece.text in scope.variables for piece in pieces)
    names = [piece.text for piece in pieces if piece.kind == "variable"]
    return Arg(
        source or prefix + "…",
        None,
        prefix,
        splits=any(_may_split(piece) for piece in pieces),
        wild=wild,
        pattern=any(_PATTERN.search(value) for name in names for value in scope.value(name) or ()),
    )


def _check_subscript(variable: Piece, following: list[Piece], scope: Scope, patterns: bool) -> None:
    """`$x[y]` is a subscript for zsh, which evaluates it: a value of `y` such as `HOME[$(id)]` runs a command."""
    if not following or not following[0].text.startswith("[") or following[0].kind in _VARIABLES:
        return
    apart = patterns and variable.kind == "quoted_variable" and following[0].kind == "raw"  # `"$x"[a-z]*`
    found = _SUBSCRIPT.match(following[0].text)
    if not apart and (found is None or any(name in scope.variables for name in re.findall(r"\w+", found[0]))):
        raise Unreadable("`$name[...]`, which zsh evaluates")


def _is_modified(following: list[Piece]) -> bool:
    """`$x:h` and `$x[2]` are parts of the value for zsh, which is the shell of some agents."""
    return (
        bool(following) and _MODIFIER.match(following[0].text) is not None and following[0].kind != "variable"
    )


def _may_split(piece: Piece) -> bool:
    return (
        piece.kind == "variable" or piece.text in ("@", "*") or (piece.kind == "unknown" and not piece.text)
    )


def _piece(piece: Piece, scope: Scope, *, first: bool, alone: bool) -> tuple[Values, bool]:
    match piece.kind:
        case "quoted":
            return (piece.text,), False
        case "raw":
            text = piece.text
            if first and text.startswith("~"):
                if not (text == "~" and alone) and not text.startswith("~/"):
                    return None, False
                text = scope.home + text[1:]
            if _LATER_TILDE.search(text) or (not first and text.startswith("~")):
                return None, False  # bash replaces it in words like `of=~/x`, and not in others
            return (text,), _PATTERN.search(text) is not None
        case "quoted_variable":
            return (
                None if piece.text in ("@", "*") else scope.value(piece.text)
            ), piece.text in scope.patterns
        case "variable":
            values = scope.value(piece.text)
            splits = (
                values is None
                or piece.text in scope.patterns
                or any(_SPLITS.search(value) for value in values)
            )
            return (None if splits else values), False
    if piece.text.startswith("arithmetic "):
        check_arithmetic(piece.text.removeprefix("arithmetic "), scope)
        return (NUMBER,), False
    return ((NUMBER,) if piece.text == "length" else None), False


# braces


def _exploded(pieces: tuple[Piece, ...]) -> list[Piece]:
    """Raw text with braces as one piece per character, so that braces may reach over quotes."""
    if not any(piece.kind == "raw" and "{" in piece.text for piece in pieces):
        return list(pieces)
    made: list[Piece] = []
    for piece in pieces:
        if piece.kind == "raw":
            if piece.text.count("{") > _BRACES:
                raise Unreadable("a word with many braces")
            made += [Piece("raw", part) for part in re.split(r"([{},])", piece.text) if part]
        else:
            made.append(piece)
    return made


def _braces(pieces: list[Piece]) -> Iterator[list[Piece]]:
    opening = next((index for index, piece in enumerate(pieces) if piece == Piece("raw", "{")), None)
    if opening is None:
        yield pieces
        return
    parts, end = _alternatives(pieces, opening)
    if parts is None:
        if any(piece == Piece("raw", ",") for piece in pieces[opening:]) and len(pieces) - opening > 2:
            raise Unreadable("braces that are not plain")
        joined = [*pieces[:opening], Piece("quoted", "{"), *pieces[opening + 1 :]]
        yield from _braces(joined)
        return
    count = 0
    for part in parts:
        for rest in _braces([*pieces[:opening], *part, *pieces[end + 1 :]]):
            count += 1
            if count > MAX_VALUES:
                raise Unreadable("a brace expansion of many words")
            yield rest


def _alternatives(pieces: list[Piece], opening: int) -> tuple[list[list[Piece]] | None, int]:
    """The alternatives between an opening brace and its end; None if these braces stand for themselves."""
    parts: list[list[Piece]] = [[]]
    depth = 0
    for index in range(opening + 1, len(pieces)):
        piece = pieces[index]
        text = piece.text if piece.kind == "raw" else ""
        if text == "}" and depth == 0:
            if len(parts) > 1:
                return parts, index
            return _sequence(parts[0]), index
        if text == "," and depth == 0:
            parts.append([])
            continue
        depth += {"{": 1, "}": -1}.get(text, 0)
        parts[-1].append(piece)
    return None, opening


def _sequence(inside: list[Piece]) -> list[list[Piece]] | None:
    text = "".join(piece.text for piece in inside)
    if ".." not in text:
        return None
    found = _SEQUENCE.fullmatch(text)
    if found is None or any(piece.kind != "raw" for piece in inside):
        raise Unreadable("a sequence that is not plain")
    low, high = next((found[one], found[one + 1]) for one in (1, 3, 5) if found[one] is not None)
    numeric = found[1] is not None
    first, last = (int(low), int(high)) if numeric else (ord(low), ord(high))
    if numeric and (len(low.lstrip("-")) > 1 and low.lstrip("-").startswith("0")):
        raise Unreadable("a sequence that is not plain")
    if abs(last - first) >= MAX_VALUES:
        return [[Piece("unknown", "length")]] if numeric and first >= 0 and last >= 0 else None
    steps = range(first, last + 1) if last >= first else range(first, last - 1, -1)
    return [[Piece("raw", str(step) if numeric else chr(step))] for step in steps]
