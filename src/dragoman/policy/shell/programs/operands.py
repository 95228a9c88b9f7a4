"""Words of programs that copy which are neither options nor the values of options: `rsync -a a/ b/ --exclude c`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import pairwise

from dragoman.policy.shell.programs.names import names
from dragoman.policy.shell.values import Arg

_COREUTILS = names("--suffix --target-directory")
_LONG_TAKES: dict[str, frozenset[str]] = {
    **dict.fromkeys(("cp", "mv", "ln"), _COREUTILS),
    "install": _COREUTILS | names("--group --owner --mode --strip-program"),
    "rsync": names(
        """
        --exclude --include --filter --exclude-from --include-from --files-from --backup-dir --suffix --compare-dest
        --copy-dest --link-dest --rsh --rsync-path --port --bwlimit --timeout --contimeout --max-size --min-size
        --max-delete --out-format --log-file --log-file-format --log-format --password-file --temp-dir --partial-dir
        --modify-window --block-size --compress-level --zl --skip-compress --info --debug --stderr --usermap
        --groupmap --chown --chmod --checksum-choice --cc --compress-choice --zc --protocol --iconv --address
        --sockopts --write-batch --read-batch --only-write-batch --stop-after --stop-at --time-limit --early-input
        --max-alloc --remote-option --outbuf --checksum-seed --copy-as --dparam
        """
    ),
}
_TAKES = {"cp": "St", "mv": "St", "ln": "St", "install": "Stgmo", "rsync": "efBTM@", "scp": "cDFiJloPSX"}
"""Letters of options whose value is the next word, or the rest of theirs."""
_WRITTEN = names(
    "--backup-dir --temp-dir --partial-dir --log-file --write-batch --only-write-batch --target-directory"
)
_PATTERNS = frozenset({"--exclude", "--include"})


@dataclass(slots=True)
class Operands:
    plain: list[Arg] = field(default_factory=list)
    read: list[Arg] = field(default_factory=list)
    """Values of options."""
    written: list[Arg] = field(default_factory=list)
    """Values of options that name files which are written."""


def operands(program: str, words: list[Arg]) -> Operands:
    """The words after a program's name, sorted."""
    found, takes, options = Operands(), "", True
    for arg in words:
        text = arg.only if arg.only is not None else arg.prefix or arg.text
        if takes in _PATTERNS:
            takes = ""  # no file, but a pattern of names
        elif takes:
            (found.written if takes in _WRITTEN or takes == "T" else found.read).append(arg)
            takes = ""
        elif options and text == "--":
            options = False
        elif options and text.startswith("-") and text != "-":
            takes = _taken(program, text)
        else:
            found.plain.append(arg)
    return found


def operands_left_out(words: list[Arg]) -> tuple[str, ...]:
    """Plain names that `rsync` leaves out at any depth, with a slash: folders; none if another option may undo it."""
    texts = [arg.only if arg.only is not None else "" for arg in words]
    if any(not text or re.match(r"--(?:include|filter|files-from)|-[A-Za-z]*[fF]", text) for text in texts):
        return ()
    told = [text.partition("=")[2] for text in texts if text.startswith("--exclude=")]
    told += [after for text, after in pairwise(texts) if text == "--exclude"]
    return tuple(name for name in told if re.fullmatch(r"[\w.-]+/?", name))


def _taken(program: str, text: str) -> str:
    """The option whose value is the next word; empty if it has none, or if its value is joined to it."""
    if text.startswith("--"):
        if "=" in text:
            return ""
        known = _LONG_TAKES.get(program, frozenset())
        if text in known or program == "rsync":  # which takes no names that are cut short
            return text if text in known else ""
        return next((name for name in sorted(known) if name.startswith(text)), "")
    letters = _TAKES.get(program, "")
    at = next((at for at, letter in enumerate(text[1:], 1) if letter in letters), None)
    return text[at] if at is not None and at == len(text) - 1 else ""
