"""Programs that start another program: what their own options are, so that the other one is found."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dragoman.policy.shell.values import Arg

_ASSIGNMENTS = {
    "env": re.compile(r"([^=]*)=(.*)", re.DOTALL),
    "sudo": re.compile(r"([^=/][^=]*)=(.*)", re.DOTALL),
}
"""What is no command yet: `env` takes every word with `=`, whatever is before it."""


@dataclass(frozen=True, slots=True)
class Wrapper:
    flags: str = ""
    """Letters of options without a value."""
    takes: str = ""
    """Letters of options with one."""
    long_flags: tuple[str, ...] = ()
    long_takes: tuple[str, ...] = ()
    positional: int = 0
    """Arguments of its own before the command."""
    transparent: bool = True
    """Whether a rule for the inner command is enough; `sudo` gives it other rights."""
    folder: str = ""
    """The option that changes the folder."""
    long_optional: tuple[str, ...] = ()
    """Names whose value, if any, follows `=`: the next word is the command already."""


WRAPPERS: dict[str, Wrapper] = {
    "env": Wrapper("i0v", "uC", ("ignore-environment", "null", "debug"), ("unset", "chdir"), folder="C"),
    "sudo": Wrapper(
        "nEHkKSbBP",
        "ugphrtTCD",
        ("non-interactive", "preserve-env", "set-home"),
        ("user", "group"),
        transparent=False,
        folder="D",
    ),
    "doas": Wrapper("n", "uC", transparent=False),
    "timeout": Wrapper("v", "ks", ("foreground", "preserve-status", "verbose"), ("kill-after", "signal"), 1),
    "gtimeout": Wrapper("v", "ks", ("foreground", "preserve-status", "verbose"), ("kill-after", "signal"), 1),
    "nice": Wrapper("0123456789", "n", (), ("adjustment",)),
    "ionice": Wrapper("t", "cn", ("ignore",), ("class", "classdata")),
    "chrt": Wrapper("bfior", "", ("batch", "fifo", "idle", "other", "rr"), (), 1),
    "taskset": Wrapper("", "", (), (), 1),
    "nohup": Wrapper(),
    "setsid": Wrapper("cfw", "", ("ctty", "fork", "wait")),
    "stdbuf": Wrapper("", "ioe", (), ("input", "output", "error")),
    "time": Wrapper("pv", "f", ("portability", "verbose"), ("format",)),
    "command": Wrapper("p"),
    "builtin": Wrapper(),
    "exec": Wrapper("cl", "a"),
    "caffeinate": Wrapper("dimsu", "t"),
    "noglob": Wrapper(),
}

XARGS = Wrapper(
    "0rtpxo",
    "nPLIdsE",
    ("null", "no-run-if-empty", "verbose", "interactive", "exit", "open-tty"),
    ("max-args", "max-procs", "delimiter", "max-chars", "process-slot-var"),
    long_optional=("replace", "eof", "max-lines"),
)


class NotSeenThrough(Exception):
    """The inner command cannot be found; the text says why."""


@dataclass(slots=True)
class Unwrapped:
    inner: list[Arg]
    env: dict[str, str]
    folder: Arg | None = None
    values: dict[str, Arg] | None = None
    """Values of the wrapper's own options, by letter or name."""


def unwrap(name: str, wrapper: Wrapper, words: list[Arg]) -> Unwrapped:
    """The command behind a wrapper's own options; `words` are those after the wrapper's name."""
    values: dict[str, Arg] = {}
    at = 0
    while at < len(words):
        word = words[at].only
        if word is None:
            raise NotSeenThrough(f"an expansion before the command that `{name}` runs")
        if word == "--":
            at += 1
            break
        if not word.startswith("-") or (word == "-" and name != "env"):
            break
        at += _option(name, wrapper, word, words[at + 1 :], values)
    for _ in range(wrapper.positional):
        if at < len(words) and words[at].only is None:
            raise NotSeenThrough(f"an expansion before the command that `{name}` runs")
        at += 1
    if name == "time" and at < len(words) and re.match(r"[A-Za-z_][A-Za-z0-9_]*\+?=|[!{(\[]", words[at].text):
        raise NotSeenThrough("`time` in front of more than a program")
    env: dict[str, str] = {}
    while name in _ASSIGNMENTS and at < len(words):
        found = _ASSIGNMENTS[name].fullmatch(words[at].only or words[at].prefix)
        if found is None:
            if words[at].only is None:
                raise NotSeenThrough(f"an expansion before the command that `{name}` runs")
            break
        env[found[1]] = found[2] if words[at].only is not None else words[at].text
        at += 1
    if env and name == "sudo" and at < len(words) and words[at].text.startswith("-"):
        raise NotSeenThrough("an option of `sudo` after a variable")
    return Unwrapped(words[at:], env, values.get(wrapper.folder) or values.get("chdir"), values)


def _option(name: str, wrapper: Wrapper, word: str, after: list[Arg], values: dict[str, Arg]) -> int:
    """How many words an option takes."""
    if word == "-":
        return 1
    if word.startswith("--"):
        option, equals, value = word[2:].partition("=")
        if option in wrapper.long_flags and (not equals or option == "preserve-env"):
            return 1
        if option in (*wrapper.long_takes, *wrapper.long_optional) and equals:
            values[option] = Arg(value, (value,))
            return 1
        if option in wrapper.long_takes and after and after[0].only is not None:
            values[option] = after[0]
            return 2
        raise NotSeenThrough(f"`{word}` of `{name}` is not known")
    for index, letter in enumerate(word[1:], 1):
        if letter in wrapper.flags:
            continue
        if letter not in wrapper.takes:
            raise NotSeenThrough(f"`{word}` of `{name}` is not known")
        if rest := word[index + 1 :]:
            values[letter] = Arg(rest, (rest,))
            return 1
        if not after or after[0].only is None:
            raise NotSeenThrough(f"`{word}` of `{name}` has no value")
        values[letter] = after[0]
        return 2
    return 1
