"""The small languages of `sed` and `awk`: whether a script only reads and prints. What is not known counts as more."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from dragoman.policy.shell.values import Arg, fixed


@dataclass(slots=True)
class Scripted:
    scripts: list[Arg] = field(default_factory=list)
    files: list[Arg] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    in_place: bool = False


_SED_LONG = frozenset(
    {
        "--quiet",
        "--silent",
        "--regexp-extended",
        "--separate",
        "--unbuffered",
        "--null-data",
        "--posix",
        "--sandbox",
        "--version",
        "--help",
    }
)


def read_sed(words: list[Arg]) -> Scripted:
    found, plain, at, options = Scripted(), [], 0, True
    while at < len(words):
        arg = words[at]
        text = arg.only if arg.only is not None else arg.prefix
        at += 1
        if not options or not text.startswith("-") or text == "-":
            plain.append(arg)
        elif text == "--":
            options = False
        elif arg.only is None:
            found.reasons.append("an option of `sed` is an expansion")
        elif text in ("-e", "--expression"):
            found.scripts += words[at : at + 1]
            at += 1
        elif text.startswith("--expression="):
            found.scripts.append(fixed(text.partition("=")[2]))
        elif text in _SED_LONG or re.fullmatch(r"-[nErsuz]+", text):
            continue
        elif re.fullmatch(r"-[nErsuz]*i(?:[A-Za-z0-9._~-]*)|--in-place(?:=.*)?", text):
            found.in_place = True
        elif re.fullmatch(r"-[nErsuz]+e", text):
            found.scripts += words[at : at + 1]
            at += 1
        else:
            found.reasons.append(f"`{text}` of `sed` is not known")
    if not found.scripts:
        found.scripts, plain = plain[:1], plain[1:]
    found.files = plain
    return found


def read_awk(words: list[Arg]) -> Scripted:
    found, at = Scripted(), 0
    while at < len(words):
        arg = words[at]
        text = arg.only if arg.only is not None else arg.prefix
        if not text.startswith("-") or text == "-":
            break
        at += 1
        if text in ("-F", "-v"):
            if at < len(words) and words[at].only is None:
                found.reasons.append("an option of `awk` is an expansion")
            at += 1
        elif text == "--":
            break
        elif arg.only is None or not re.fullmatch(r"-F.*|-v[A-Za-z_]\w*=.*", text, re.DOTALL):
            found.reasons.append(f"`{arg.text}` of `awk` is not known")
    found.scripts, found.files = words[at : at + 1], words[at + 1 :]
    return found


_ADDRESS = r"(?:[0-9]+(?:~[0-9]+)?|\$|/(?:[^/\\\n]|\\[^\n])*/I?)"
_RANGE = re.compile(rf"\s*(?:{_ADDRESS}(?:\s*,\s*(?:{_ADDRESS}|[+~][0-9]+))?)?\s*!?\s*")
_PLAIN = re.compile(r"[pPdDqQ=lnNgGhHxz](?:[0-9]+)?")
_TEXT = re.compile(r"[aic](?:\\\n?)?[ \t]*[^\s\\][^\n\\]*(?=\n|$)")
_LABEL = re.compile(r"[btT:][ \t]*[A-Za-z0-9_]*")  # a line end ends the command: `t\neid` runs `id`
_FLAGS = re.compile(r"[gpiIM0-9]*")


def sed_only_prints(script: str) -> bool:
    """Whether a sed script has neither `w`, `r`, `e` and `F` nor anything that this reader does not know."""
    at = 0
    while at < len(script):
        if script[at] in " \t\n;}":
            at += 1
            continue
        found = _RANGE.match(script, at)
        at = found.end() if found is not None else at
        if at >= len(script):
            return False
        end = _sed_command(script, at)
        if end is None:
            return False
        at = end
        if at < len(script) and script[at] not in " \t\n;}":
            return False
    return True


def _sed_command(script: str, at: int) -> int | None:
    char = script[at]
    if char == "{":
        return _skip_open(script, at)
    if char in "sy":
        return _substitute(script, at)
    for pattern in (_TEXT, _LABEL, _PLAIN):
        if found := pattern.match(script, at):
            return found.end()
    return None


def _skip_open(script: str, at: int) -> int | None:
    """After `{` another command follows at once; a blank makes it one."""
    rest = script[at + 1 :]
    inner = rest.lstrip(" \t\n")
    if not inner or "{" in inner:
        return None
    closing = rest.rfind("}")
    if closing < 0:
        return None
    return (
        len(script) if sed_only_prints(rest[:closing]) and not rest[closing + 1 :].strip(" \t\n;") else None
    )


def _substitute(script: str, at: int) -> int | None:
    if at + 1 >= len(script):
        return None
    delimiter = script[at + 1]
    if delimiter in "\\\n \t;" or delimiter.isalnum() or delimiter in "[]":
        return None
    place = at + 2
    for _ in range(2):
        while place < len(script) and script[place] != delimiter:
            if script[place] == "[" and _ == 0:
                return _bracketed(script, at)
            place += 2 if script[place] == "\\" else 1
        if place >= len(script):
            return None
        place += 1
    flags = _FLAGS.match(script, place)
    return flags.end() if flags is not None else None


def _bracketed(script: str, at: int) -> int | None:
    """A substitution whose pattern has brackets, understood where the delimiter is not inside of them."""
    delimiter = re.escape(script[at + 1])
    part = rf"(?:[^{delimiter}\[\\\n]|\\[^\n]|\[\^?\]?[^\]{delimiter}\[\\\n]*\])*"
    if script[at + 1] in "^]-":
        return None
    found = re.compile(
        rf"[sy]{delimiter}{part}{delimiter}(?:[^{delimiter}\\\n]|\\[^\n])*{delimiter}[gpiIM0-9]*"
    ).match(script, at)
    return found.end() if found is not None else None


_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_REGEX = re.compile(r"(^|[(,~!&|{;}\n][ \t]{0,80})/(?:[^/\\\n\[]|\\.|\[[^\]/\n]*\])+/")
_RUNS = re.compile(r"system|getline|ARGV|ARGC|PROCINFO|@|\bclose\b|\bfflush\b|(?<!\|)\|(?!\|)|\|&")


_QUOTE_BETWEEN_SLASHES = re.compile(r'/[^\n]*"[^\n]*/|\\\n')
"""Text whose strings and regular expressions begin elsewhere if a slash is a division; or a line that goes on."""


def awk_only_prints(program: str) -> bool:
    """Whether an awk program neither starts commands nor reads or writes files."""
    if ">" not in program and not _RUNS.search(program.replace("||", " or ")):
        return True  # however it is read
    if _QUOTE_BETWEEN_SLASHES.search(program):
        return False
    text = _STRING.sub('""', program)
    text = _REGEX.sub(r"\1/x/", text)
    text = text.replace("||", " or ")
    if '"' in text.replace('""', "") or _RUNS.search(text):
        return False
    depth, parens = 0, 0
    for char in text:
        if char in "{}":
            depth += 1 if char == "{" else -1
        elif char in "()":
            parens += 1 if char == "(" else -1
        elif char == ">" and depth > 0 and parens == 0:
            return _only_compares(text)
    return True


def _only_compares(text: str) -> bool:
    """Whether each `>` in an action is a comparison: then no `print` is in front of it in its statement."""
    statements = re.split(r"[;{}\n]", text)
    return not any(">" in statement and re.search(r"\bprintf?\b", statement) for statement in statements)
