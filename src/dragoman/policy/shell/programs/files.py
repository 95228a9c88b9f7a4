"""Which arguments of a program are files, hosts and scripts, and whether the files are read or written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from dragoman.policy.act import Access, Effect
from dragoman.policy.shell.programs.names import names
from dragoman.policy.shell.programs.network import has_address, path_of
from dragoman.policy.shell.programs.operands import operands
from dragoman.policy.shell.programs.unpack import names_in_lists, packed
from dragoman.policy.shell.values import Arg, fixed

NO_FILES = names(
    """
    cd pushd popd
    echo printf true false : test [ sleep wait kill seq yes expr basename dirname whoami id groups uname nproc
    arch uptime free ps pgrep which type printenv tput locale getconf logname tty exit return break continue
    shift umask ulimit times set unset export readonly declare local typeset read cal numfmt factor hostname
    jobs
    """
)
_PATTERN_FIRST = frozenset({"grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack", "jq", "yq", "tr"})
_READS = names(
    """
    date cat head tail wc cut nl tac rev fold od hexdump xxd strings stat ls dir diff cmp comm cksum md5sum sha1sum
    sha224sum sha256sum sha384sum sha512sum b2sum readlink realpath column paste join expand unexpand fmt sort
    uniq shuf tree iconv base64 base32 file less more most bat du df zcat look pr tsort sum exa eza fd fdfind
    cd pushd popd git curl pytest python python3 node mypy pyright tsc eslint cargo go npm pnpm yarn make
    gmake docker kubectl gh
    """
)
"""Programs whose file arguments are read; those of programs that are not known count as written."""
_FETCHES = names(
    """
    git curl pytest python python3 node cargo go npm pnpm yarn make gmake docker kubectl gh rsync scp
    """
)
"""Of the programs in these tables, those that take addresses of other machines."""
COPIES = frozenset({"cp", "install", "rsync", "scp", "ln", "mv"})
"""Programs that write to their last argument, or into it if it is a folder."""


def paths(program: str, words: list[Arg], effects: list[Effect] | None = None) -> list[tuple[Arg, Access]]:
    """The arguments that are files, with what is done to them."""
    if program in NO_FILES:  # `echo /etc/*` still tells the names of files
        return [(arg, "read") for arg in words if arg.pattern]
    if (pairs := packed(program, words)) is not None:
        return pairs
    access: Access = "read" if program in _READS or program in _PATTERN_FIRST else "write"
    if any(effect.does == "writes" for effect in effects or ()):
        access = "write"
    plain = [_without_scheme(arg) for arg in words if not _is_option(arg)]
    if program in _PATTERN_FIRST and not any(_is_pattern_option(arg) for arg in words):
        plain = plain if _is_value_of_option(program, words) else plain[1:]
    elif program == "dd":
        return list(_of_dd(words))
    found = [(arg, access) for arg in plain if not _is_address(program, arg)]
    both = access == "write" and program not in _ONLY_WRITES
    if program in COPIES and len(plain) > 1 and program not in ("ln", "mv"):
        # What is written to a link is written to the file itself; `cp -t folder file` has the folder first.
        both = program in ("cp", "install") and any(
            re.match(r"-[^-]*[lst]|--[lst]", arg.text) for arg in words
        )
        if not both:
            told = operands(program, words)
            source: Access = "write" if any(effect.does == "writes" for effect in effects or ()) else "read"
            found = [(arg, source) for arg in told.plain[:-1]] + [(arg, "read") for arg in told.read]
            found += [(arg, "write") for arg in (*told.plain[-1:], *told.written)]
            found = [pair for pair in found if not _is_address(program, pair[0])]
    elif program in ("uniq", "xxd") and len(plain) > 1:
        found[1:] = [(arg, "write") for arg in plain[1:]]
    known = (access == "read" and program not in _SUBCOMMANDS) or program in _WRITERS
    found = [pair for pair in found if known or _looks_like_path(pair[0])]
    if program in ("wc", "du"):  # `--files0-from` reads names that the line does not tell
        found += [(Arg(arg.text, None), "read") for arg in words if arg.text.startswith("--f")]
    found += [(arg, "read") for arg in names_in_lists(program, words)]
    patterns = _LEAVES_OUT if program in _TAKES_PATTERNS else None
    told_in = [arg for arg in words if patterns is None or not patterns.match(arg.text)]
    found += [(arg, access) for arg in _in_options(told_in)]
    found += [(arg, "read") for arg in _of_form(words)] if program == "curl" else []
    if _writes_here(program, words):
        found.append((fixed("."), "write"))
    return found + [(arg, "read") for arg, does in found if both and does == "write"]


def _writes_here(program: str, words: list[Arg]) -> bool:
    """Whether a file is written to the folder of the line, under a name that its address has, or its server."""
    if program == "wget":
        return not any(re.match(r"-[^-]*[OP]|--output-d|--directory-p", arg.text) for arg in words)
    return (
        program == "curl"
        and any(re.match(r"-[^-]*O|--remote-n", arg.text) for arg in words)
        and not any(arg.text.startswith("--output-d") for arg in words)
    )


def makes_links(program: str, words: list[Arg]) -> bool:
    """Whether links that say where they lead are made."""
    return program in ("ln", "cp") and any(re.match(r"-[^-]*s|--s", arg.text) for arg in words)


_ONLY_WRITES = names("rm rmdir mkdir touch chmod chown chgrp tee truncate shred unlink mkfifo mknod")
"""Programs that do not look at what is in the files that they change."""


_WRITERS = names(
    """
    rm rmdir mv cp ln mkdir touch chmod chown chgrp tee truncate install shred unlink mkfifo mknod patch rsync
    scp unzip tar zip gzip gunzip bzip2 xz zstd split csplit
    """
)


_SUBCOMMANDS = names(
    """
    git cargo go npm pnpm yarn make gmake docker kubectl gh python python3 node
    """
)
"""Programs most of whose arguments are no files: only those that look like one count."""


_FOLLOWS_LINKS: dict[str, str] = {
    **dict.fromkeys(("grep", "egrep", "fgrep"), r"-[^-]*R.*|--d.*"),
    **dict.fromkeys(("rg", "fd", "fdfind"), r"-[^-]*L.*|--follow"),
    **dict.fromkeys(("ls", "dir", "du", "cp"), r"-[^-]*[LH].*|--d.*"),
    "ag": r"-[^-]*f.*|--follow",
    "find": r"-L|-follow",
    "tree": r"-[^-]*l.*",
    "tar": r"-[^-]*h.*|--d.*",
    "diff": r"-[^-]*r.*|--r.*",
}


def follows_links(program: str, words: list[Arg]) -> bool:
    """Whether links inside a folder are followed, wherever they lead."""
    pattern = _FOLLOWS_LINKS.get(program)
    if pattern is None:
        return False
    return any(
        re.fullmatch(pattern, value, re.DOTALL)
        for arg in words
        for value in (arg.values if arg.values is not None else ("-" if not arg.prefix else arg.prefix,))
    ) or any(arg.wild and arg.may_be_option() for arg in words)


def _is_option(arg: Arg) -> bool:
    values = arg.values
    if values is not None and len(values) == 1:
        return values[0][:1] == "-" and values[0] != "-"
    return values is not None and all(value.startswith("-") and value != "-" for value in values)


_TAKES_VALUE = {
    **dict.fromkeys(("grep", "egrep", "fgrep", "zgrep"), "ABCmdD"),
    "rg": "ABCgtTmMjErd",
    "ag": "ABCmGp",
    "ack": "ABCmg",
    "jq": "L",
    "yq": "oI",
}
"""Letters of options whose value is the next word."""


def _is_value_of_option(program: str, words: list[Arg]) -> bool:
    """Whether the first word that is no option belongs to one, so that it may be a file instead of the pattern."""
    before = ""
    for arg in words:
        if not _is_option(arg):
            break
        before = arg.text
    if before.startswith("--"):
        return "=" not in before and before != "--"
    return len(before) > 1 and before[-1] in _TAKES_VALUE.get(program, "")


def _is_pattern_option(arg: Arg) -> bool:
    text = arg.only or ""
    return bool(re.match(r"-[^-]*[ef]", text)) or text.startswith(("--r", "--f"))  # names may be cut short


def _is_address(program: str, arg: Arg) -> bool:
    """Whether a word is an address and no file. Programs that fetch nothing take `https://x` for a file."""
    local = (
        program in _READS or program in _PATTERN_FIRST or program in _WRITERS
    ) and program not in _FETCHES
    return not local and arg.values is not None and has_address(arg.text) and ".." not in arg.text


def _without_scheme(arg: Arg) -> Arg:
    """`file:///x` as the path that it is."""
    if not arg.values or not any(value[:5].lower() == "file:" for value in arg.values):
        return arg
    return Arg(arg.text, tuple(path_of(value) for value in arg.values), pattern=arg.pattern)


def _looks_like_path(arg: Arg) -> bool:
    if arg.values is None:
        return True
    return any("/" in value or value.startswith(("~", ".")) or arg.pattern for value in arg.values)


def _in_options(words: list[Arg]) -> Iterator[Arg]:
    """Paths inside options: `--output=/x`, `-o/x`, `if=/x`."""
    for arg in words:
        if arg.values is None and re.match(r"-[^-]|--?[^=]+=", arg.prefix):
            yield Arg(arg.text, None)
        for text in arg.values if arg.values is not None else (arg.prefix,):
            value = path_of(_in_option(text))
            if "/" in value or value.startswith(("~", ".")):
                yield fixed(value) if arg.values is not None else Arg(arg.text, None, value)


_TAKES_PATTERNS = names("rsync tar bsdtar gtar grep egrep fgrep du diff")
_LEAVES_OUT = re.compile(r"--(?:exclude|include|exclude-dir)=")
"""Options with a pattern of names, which is no file."""
_FILE_OF_CONTENTS = re.compile(r"(?:^|=)@(.+)|@((?:/|~|\.\.?/).*)", re.DOTALL)
_JOINED = re.compile(r"-[A-Za-z]+((?:/|\.\.(?:/|$)|~).*)", re.DOTALL)
_JOINED_UPWARDS = re.compile(r"-[A-Za-z](.*/\.\.(?:/.*)?)$", re.DOTALL)
_PATH_IN_OPTION = re.compile(r"[@=/~]|\.\.")


def _in_option(text: str) -> str:
    if not _PATH_IN_OPTION.search(text):
        return ""
    if found := _FILE_OF_CONTENTS.search(text):
        return found[1] or found[2]  # the contents of a file: `curl -d @/x`, `pytest @/x`
    if "=" in text:
        return text.partition("=")[2]
    if found := _JOINED.match(text):
        return found[1]
    if found := _JOINED_UPWARDS.match(text):
        return found[1]
    return ""


_FORM = re.compile(r"-[^-]*F|--fo.*", re.DOTALL)
_IN_FORM = re.compile(r"[^=]*=[@<](.*)", re.DOTALL)
_PLAIN_IN_FORM = re.compile(r"[\w./~+-]+")


def _of_form(words: list[Arg]) -> Iterator[Arg]:
    """Files in forms of curl: `-F a=@x`, `-F 'a=<x'`; several, quoted ones and headers from a file are not known."""
    for before, arg in zip(["", *(each.text for each in words)], words, strict=False):
        joined = _FORM.match(arg.text)
        if joined is None and not _FORM.fullmatch(before):
            continue
        text = arg.only if arg.only is not None else arg.prefix
        found = _IN_FORM.fullmatch(text[2:] if joined is not None else text)
        if arg.only is None or (found is None and re.search(r"[@<]", text)):
            yield Arg(arg.text, None)
        elif found is not None:
            name, _, rest = found[1].partition(";")
            plain = _PLAIN_IN_FORM.fullmatch(name) and not re.search(r"[@<]", rest)
            yield fixed(name) if plain else Arg(arg.text, None)


def _of_dd(words: list[Arg]) -> Iterator[tuple[Arg, Access]]:
    for arg in words:
        name, _, value = (arg.only if arg.only is not None else arg.prefix).partition("=")
        made = fixed(value) if arg.only is not None else Arg(arg.text, None)
        if name in ("of", "if") or arg.only is None:
            yield made, "read" if name == "if" else "write"


# find


@dataclass(slots=True)
class Find:
    roots: list[Arg] = field(default_factory=list)
    inner: list[tuple[list[Arg], bool]] = field(default_factory=list)
    """Commands of `-exec` and its like, and whether they run in the folder of what was found."""
    written: list[Arg] = field(default_factory=list)
    compared: list[Arg] = field(default_factory=list)
    """Files that others are compared with."""
    writes: list[str] = field(default_factory=list)
    deletes: bool = False
    reasons: list[str] = field(default_factory=list)
    names: tuple[str, ...] = ()
    """Patterns of the names of all files that an action is for; empty if there may be others."""


def read_find(words: list[Arg]) -> Find:
    found, at = Find(), 0
    while at < len(words) and words[at].only in ("-H", "-L", "-P"):
        at += 1
    if at < len(words) and re.match(r"-[DOf]|--$", words[at].text):
        found.reasons.append(f"`{words[at].text}` of `find` is not known")
    while at < len(words) and not re.match(r"-.|[(),!]$", words[at].text, re.DOTALL):
        found.roots.append(words[at])
        at += 1
    while at < len(words):
        word = words[at].text
        at += 1
        if word in _EXECUTES:
            start = at
            while at < len(words) and not _ends_exec(words, at, start):
                at += 1
            found.inner.append((words[start:at], word.endswith("dir")))
            at += 1
        elif word in ("-samefile", "-anewer", "-cnewer") or word.startswith("-newer"):
            found.compared += words[at : at + 1]
            at += 1
        elif word == "-delete":
            found.deletes = True
            found.writes.append(word)
        elif word in ("-fprint", "-fprint0", "-fls", "-fprintf", "-files0-from"):
            found.written += words[at : at + 1]
            found.writes.append(word)
            at += 1
    found.names = _names_of_find(words)
    return found


def _names_of_find(words: list[Arg]) -> tuple[str, ...]:
    """What `-name` says about every file that an action of `find` is for; empty if that is not plain to see."""
    said: list[str] = []
    name, at, groups = "", 0, False
    while at < len(words):
        word, at = words[at].only, at + 1
        if word is None:
            return ()
        if word in ("-name", "-iname"):
            name = name or (words[at].only or "" if at < len(words) else "")
            at += 1
        elif word in _EXECUTES or word == "-delete":
            if not name:
                return ()
            start = at
            while word in _EXECUTES and at < len(words) and not _ends_exec(words, at, start):
                at += 1
            at += word in _EXECUTES
        elif word in ("-o", "-or"):
            if groups and not name:
                return ()
            said, name = [*said, name] if name else said, ""
        elif word in _TESTS_WITH_VALUE:
            at += 1
        elif word in ("(", ")"):
            groups = True
        elif (word.startswith("-") and word not in _PLAIN_TESTS) or word in ("!", ","):
            return ()
    return () if groups and not name else tuple([*said, name] if name else said)


_EXECUTES = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_TESTS_WITH_VALUE = names("-type -maxdepth -mindepth -path -ipath -wholename -mtime -mmin -size -user -regex")
_PLAIN_TESTS = names("-print -print0 -prune -empty -depth -H -P -L -and -a -true")


def _ends_exec(words: list[Arg], at: int, start: int) -> bool:
    """`;` ends the command; `+` only after `{}`, elsewhere it is an argument."""
    return words[at].text == ";" or (words[at].text == "+" and at > start and words[at - 1].text == "{}")
