"""Programs that write files whose names the line does not tell: unpackers, patches, copies of other machines' folders.

For each, the folders that it fills. A place below such a folder that no agent may write to may be written to as well.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator

from dragoman.policy.act import Access
from dragoman.policy.shell.programs.names import names
from dragoman.policy.shell.programs.operands import operands
from dragoman.policy.shell.values import Arg, fixed

TARS = names("tar bsdtar gtar")
_HERE = fixed(".")
_ANYWHERE = Arg("(paths in the archive)", None)
"""Of archives whose names may begin with a slash, or lead upwards."""
_REMOTE = re.compile(r"(?:[^/:]*@)?[^/:]+::?.*|rsync://.*", re.DOTALL)
_TAR_FLAGS = re.compile(
    r"-[xzjJvkpmaZUS]+|--[a-z-]+=.*|--(?:extract|get|gzip|xz|bzip2|zstd|verbose|no-same-owner)|[^-].*"
)
"""Words after which `-C` is an option of tar, and no value."""


def with_dash(program: str, words: list[Arg]) -> list[Arg]:
    """`tar xzf`: the first word is options although it has no dash."""
    if program in TARS and words and words[0].only and not words[0].text.startswith("-"):
        return [Arg(words[0].text, ("-" + words[0].text,)), *words[1:]]
    return words


def filled_folders(program: str, words: list[Arg]) -> list[Arg]:
    """Folders below which a program writes files of any name; `words` are those after its name."""
    found = _FILLS.get(program)
    return list(found(words)) if found is not None else []


_PACKS = {
    **dict.fromkeys(
        TARS,
        (
            re.compile(r"-?[czjJvhpaZ]*c[czjJvhpaZ]*f"),
            re.compile(
                r"--exclude(?:-\w+)*(?:=.*)?|-C|--directory(?:=.*)?|-[zjJvhp]+|--(?:gzip|xz|zstd|verbose)"
            ),
        ),
    ),
    "zip": (re.compile(r"-[rqv0-9yjX]+|[^-].*", re.DOTALL), re.compile(r"-[rqv0-9yjXxi]+")),
}
"""The first word, and options after it, with which a program only reads what it packs."""


def packed(program: str, words: list[Arg]) -> list[tuple[Arg, Access]] | None:
    """The archive that is written, and what is read for it; None if it is not plain that nothing else is done."""
    if program not in _PACKS or not words or any(arg.only is None and not arg.pattern for arg in words):
        return None
    first, options = _PACKS[program]
    texts = _texts(words)
    rest = [text for text in texts[1:] if text.startswith("-")]
    if not first.fullmatch(texts[0]) or not all(options.fullmatch(text) for text in rest):
        return None
    plain = [arg for arg, text in zip(words, texts, strict=True) if not text.startswith("-")]
    if program != "zip" and plain[:1] == words[:1]:
        plain = plain[1:]
    archive = next((arg for arg in plain[:1]), None)
    if program != "zip" and ("f" not in texts[0] or words[1:2] != [archive]):
        return None
    return [(arg, "write" if arg is archive else "read") for arg in plain]


def names_in_lists(program: str, words: list[Arg]) -> Iterator[Arg]:
    """Files that are packed and whose names are in a list: `tar -T list`, `zip -@`."""
    texts = _texts(words)
    if program == "zip" and any(re.match(r"-[^-]*@", text) for text in texts):
        yield Arg("(names from input)", None)
    if program not in TARS or not texts or re.fullmatch(r"-?[a-zA-SU-Z]*[tx][a-zA-SU-Z]*", texts[0]):
        return
    bundle = texts[0] if not texts[0].startswith("-") else ""
    if "T" in bundle or any(re.match(r"-[^-fC]*T|--files", text) for text in texts):
        yield Arg("(names in a list)", None)


def _texts(words: list[Arg]) -> list[str]:
    return [arg.only if arg.only is not None else arg.prefix for arg in words]


def _values(words: list[Arg], letter: str, *long: str) -> list[Arg]:
    """Values of an option, joined to it or in the next word. Names of long options may be cut short."""
    found: list[Arg] = []
    for at, text in enumerate(_texts(words)):
        name, equals, value = text.partition("=")
        if len(name) > 2 and any(each.startswith(name) for each in long):
            found += [fixed(value)] if equals else words[at + 1 : at + 2]
        elif letter and not text.startswith("--") and (joined := re.match(rf"-[A-Za-z]*?{letter}(.*)", text)):
            found += [fixed(joined[1])] if joined[1] else words[at + 1 : at + 2]
    return found


def _tar(words: list[Arg]) -> Iterator[Arg]:
    texts = _texts(words)
    bundle = texts[0] if texts and not texts[0].startswith("-") else ""
    if "x" not in bundle and not any(
        re.match(r"-[^-fC]*x|--(?:ext|get)", text) or (text == "" and arg.values is None)
        for text, arg in zip(texts, words, strict=True)
    ):
        return
    if re.match(r"-?[a-zA-NP-Z]*O[a-zA-Z]*$", texts[0]) and "C" not in texts[0]:
        return  # to the output; elsewhere the word may be the value of an option
    if any(re.match(r"-[^-]*T|--files", text) for text in texts[1:]) or "T" in bundle:
        yield Arg("(a folder that the list of files names)", None)
    if "P" in bundle or any(re.match(r"-[^-]*P|--abs", text) for text in texts):
        yield _ANYWHERE
    folders = _values(words[1:] if bundle else words, "C", "--directory")
    yield from folders
    sure = folders and not bundle.count("C") and all(_is_option(texts, at) for at in range(len(texts)))
    if not sure:
        yield _HERE
    if len(folders) > 1:  # `-C a -C b` is `a/b`
        known = all(folder.only is not None for folder in folders)
        joined = os.path.join(*(folder.only or "" for folder in folders))  # noqa: PTH118
        yield fixed(joined) if known else Arg("(folders of -C)", None)
    if "C" in bundle:
        yield from words[1:4]


def _is_option(texts: list[str], at: int) -> bool:
    """Whether a word that looks like `-C` of tar is this option, in a word of its own or as `--directory`."""
    if not re.match(r"-[^-]*C|--dir", texts[at]):
        return True
    plain = re.fullmatch(r"-[xzjJv]*C|--directory(?:=.*)?", texts[at]) is not None
    return plain and (at == 0 or _TAR_FLAGS.fullmatch(texts[at - 1]) is not None)


def _unzip(words: list[Arg]) -> Iterator[Arg]:
    texts = _texts(words)
    lists = texts and re.fullmatch(r"-[lvZtpczqaj]*[lvZtpcz][lvZtpczqaj]*", texts[0])
    if lists and not any(re.match(r"-.*-", text) for text in texts[1:]):  # `-l-` takes `-l` back
        return
    if any(re.match(r"-[^d-]*:", text) for text in texts):
        yield _ANYWHERE
    folders = [
        arg
        for at, arg in enumerate(words)
        if (at and texts[at - 1] == "-d") or (texts[at].startswith("-d") and len(texts[at]) > 2)
    ]
    yield from (fixed(arg.text[2:]) if arg.text.startswith("-d") else arg for arg in folders)
    if not folders or any(re.match(r"-[^d-]*[Px]", text) for text in texts):  # a value may look like `-d`
        yield _HERE


def _seven_zip(words: list[Arg]) -> Iterator[Arg]:
    if _texts(words)[:1] in (["x"], ["e"]):
        yield from _values(words, "o") or [_HERE]


def _cpio(words: list[Arg]) -> Iterator[Arg]:
    texts = _texts(words)
    if texts and re.fullmatch(r"-[a-zA-CE-Z]*[ot][a-zA-CE-Z]*|--create|--list", texts[0]):
        return
    yield from (*_values(words, "D", "--directory"), *words[-1:], _HERE)
    if not any(text.startswith("--no-abs") for text in texts):
        yield _ANYWHERE


def _pax(words: list[Arg]) -> Iterator[Arg]:
    if any(re.match(r"-[A-Za-z]*r", text) for text in _texts(words)):
        yield from (*words[-1:], _HERE, _ANYWHERE)


def _ar(words: list[Arg]) -> Iterator[Arg]:
    if any("x" in text for text in _texts(words)[:3]):
        yield from (*_values(words, "", "--output"), _HERE)


def _jar(words: list[Arg]) -> Iterator[Arg]:
    if words and ("x" in words[0].text.partition("=")[0] or words[0].values is None):
        yield from (*_values(words, "C", "--dir"), _HERE)


def _unrar(words: list[Arg]) -> Iterator[Arg]:
    if _texts(words)[:1] in (["x"], ["e"]):
        yield from (*words[2:], _HERE)


def _python(words: list[Arg]) -> Iterator[Arg]:
    """`python -m zipfile -e archive folder`."""
    texts = _texts(words)
    at = texts.index("-m") if "-m" in texts else len(texts)
    if texts[at + 1 : at + 2] in (["zipfile"], ["tarfile"]):
        after = words[at + 2 :]
        if len(after) == 3 and texts[at + 2] in ("-e", "--extract"):
            yield after[2]
        elif texts[at + 2 : at + 3] not in (["-l"], ["--list"], ["-t"], ["--test"]):
            yield from (*after, _HERE)


def _patch(words: list[Arg]) -> Iterator[Arg]:
    """The patch names the files, save where the line names one."""
    if not words or _texts(words)[0].startswith("-"):
        yield from (*_values(words, "d", "--directory"), _HERE)


def _wget(words: list[Arg]) -> Iterator[Arg]:
    """With folders as they are at the other machine."""
    if any(
        re.match(r"-[A-Za-z]*[rmpxi]|--(?:rec|mir|page|force-d|input|no-host|trust|content-d)|-nH", text)
        for text in _texts(words)
    ):
        yield from (*_values(words, "P", "--directory-prefix"), _HERE)


def _rsync(words: list[Arg]) -> Iterator[Arg]:
    """From another machine, names come from there; `--delete` takes away what is not in the source."""
    plain = operands("rsync", words).plain
    far = any(_REMOTE.fullmatch(arg.text) for arg in plain[:-1])
    if far or any(re.match(r"--(?:del|files-from|read-b)", text) for text in _texts(words)):
        yield from plain[-1:]


def _scp(words: list[Arg]) -> Iterator[Arg]:
    plain = operands("scp", words).plain
    deep = any(re.match(r"-[^-]*r", text) for text in _texts(words))
    if deep and any(_REMOTE.fullmatch(arg.text) for arg in plain[:-1]):
        yield plain[-1]


def _last(words: list[Arg]) -> Iterator[Arg]:
    yield from words[-1:]


_FILLS: dict[str, Callable[[list[Arg]], Iterator[Arg]]] = {
    **dict.fromkeys(TARS, _tar),
    "unzip": _unzip,
    **dict.fromkeys(("7z", "7za", "7zr", "7zz"), _seven_zip),
    "cpio": _cpio,
    "pax": _pax,
    "ar": _ar,
    "jar": _jar,
    **dict.fromkeys(("unrar", "rar"), _unrar),
    **dict.fromkeys(("unar", "atool", "aunpack", "dtrx", "x"), lambda words: iter([_HERE])),
    **dict.fromkeys(("python", "python3"), _python),
    "patch": _patch,
    "wget": _wget,
    "rsync": _rsync,
    "scp": _scp,
    "ditto": _last,
}
