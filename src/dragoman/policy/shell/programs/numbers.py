"""Arguments of builtins that zsh evaluates as arithmetic: one that is no number may run a command.

`printf %d 'HOME[$(id)]'` runs `id` in zsh 5.9, which is the shell of some agents.
"""

from __future__ import annotations

import re

from dragoman.policy.shell.values import IS_NUMBER, Arg, Scope

_DECIMAL = re.compile(r"[-+]?[0-9]+(?:\.[0-9]*)?")
_COUNTED = re.compile(r'"?\$(?:\(\([^()]*\)\)|\{#\w+\}|\{?([A-Za-z_]\w*|[?#$!])\}?)"?')
"""An expansion that is a number by itself, or the name of a variable that may be one."""
_DIRECTIVE = re.compile(r"%[^A-Za-z(%]*[A-Za-z(]")


def is_number(arg: Arg, scope: Scope) -> bool:
    """Whether a word is known to be a number."""
    if arg.values is not None:
        return all(_DECIMAL.fullmatch(value) for value in arg.values)
    found = _COUNTED.fullmatch(arg.text)
    if found is None or found[1] is None:
        return found is not None
    values = scope.value(found[1])
    return values is not None and all(IS_NUMBER.fullmatch(value) for value in values)


def numbers_are_known(words: list[Arg], scope: Scope) -> bool:
    """Whether the arguments of `printf` that it takes for numbers are some; the first word is the format."""
    if len(words) < 2:
        return True
    form, arguments = words[0].only, words[1:]
    if form is None:
        return all(is_number(arg, scope) for arg in arguments)
    directives = _DIRECTIVE.findall(form.replace("%%", ""))
    slots = [
        number
        for directive in directives
        for number in (*[True] * directive.count("*"), directive[-1] not in "sbqc")
    ]
    if not any(slots):
        return True
    ordered = not any("$" in directive for directive in directives) and not any(
        arg.splits or arg.wild or arg.pattern for arg in arguments
    )
    return all(
        is_number(arg, scope) for at, arg in enumerate(arguments) if not ordered or slots[at % len(slots)]
    )
