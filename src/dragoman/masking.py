"""Masks secrets in URLs, command lines and other text before it is shown or logged.

`mask` is for any text: a URL in it loses its user and password, and the values of parameters with a secret's name.
`mask_setting` and `mask_words` are for configured values and commands: there every parameter of a URL is masked, since
no reader needs the values.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

MASK = "********"

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s\"'<>]+")
_USERINFO = re.compile(r"(?<=://)[^/?#]*@")
_PARAMETER = re.compile(r"([?&;#])([^=&;#?]*)(=?)([^&;#]*)")
_OPTION = re.compile(r"--?[A-Za-z][\w.-]*")
_HEADER = re.compile(r"([A-Za-z][\w-]*)(\s*:\s*)(?!//)(\S.*)", re.DOTALL)
_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_ASSIGNED = re.compile(
    r"""(?P<name>[A-Za-z][\w.-]*)(?P<between>\\*["']?\s*[:=]\s*(?P<quote>\\*["'])?)"""
    r"""(?(quote)(?:(?!(?P=quote)).)+|(?:(?:Bearer|Basic|Token)\s+)?[^\s"'\\,;&}\])]+)""",
    re.IGNORECASE | re.DOTALL,
)
_LOOKS_SECRET = re.compile(
    r"(?i:(?<=bearer\s)|(?<=basic\s))[\w.~+/=-]{8,}"
    r"|\b(?:sk|pk|rk)[-_][\w-]{12,}|\b(?:ghp|gho|ghs|github_pat|xox[abps])[-_]\w[\w-]{12,}|\bAKIA[A-Z0-9]{16}\b"
)
_SECRET_PARTS = frozenset(
    {
        *("token", "tokens", "secret", "secrets", "key", "keys", "apikey", "accesskey", "password", "passwd"),
        *("passphrase", "pass", "pwd", "auth", "authorization", "credential", "credentials", "bearer", "jwt"),
        *("sig", "signature", "cookie", "code"),
    }
)
_SECRET_ENDS = ("token", "secret", "password", "apikey")


def mask(text: str) -> str:
    """Mask the secrets of URLs in a text; other parameters stay, so that a link still works."""
    return _ADDRESS.sub(lambda found: _address(found[0], every=False), text) if "://" in text else text


def mask_text(text: str) -> str:
    """Mask secrets in text from outside: URLs, `password=abc`, `"apiKey":"abc"`, `Bearer abc`, `sk-abc`."""
    return _LOOKS_SECRET.sub(MASK, "".join(_without_assigned(mask(text))))


def _without_assigned(text: str) -> Iterator[str]:
    """The text in pieces, secret values masked; other values are searched for further names: `error: token=abc`."""
    done = 0
    while (found := _ASSIGNED.search(text, done)) is not None:
        plain = re.sub(r"[Cc]ode\Z", "", found["name"])  # an error code is no secret
        secret = bool(plain) and says_secret(plain)
        yield text[done : found.end("between")] + (MASK if secret else "")
        done = found.end() if secret else found.end("between")
    yield text[done:]


def mask_setting(text: str) -> str:
    """Mask the URLs in one configured value."""
    return _ADDRESS.sub(lambda found: _address(found[0], every=True), text) if "://" in text else text


def mask_words(words: Iterable[str]) -> list[str]:
    """Mask a command line: `--token abc`, `--token=abc`, `API_KEY=abc`, `Authorization: abc` and URLs."""
    shown: list[str] = []
    option = ""
    for word in words:
        if option and not _OPTION.match(word):
            shown.append(MASK)
        else:
            shown.append(mask_setting(_word(word)))
        option = word if _OPTION.fullmatch(word) and says_secret(word) else ""
    return shown


def says_secret(name: str) -> bool:
    """Whether a name says that its value is a secret: `api_key`, `accessToken`, `--password`."""
    parts = {part.lower() for part in _PART.findall(name)}
    return not parts.isdisjoint(_SECRET_PARTS) or name.lower().endswith(_SECRET_ENDS)


def _word(word: str) -> str:
    if header := _HEADER.fullmatch(word):
        return f"{header[1]}{header[2]}{MASK}" if says_secret(header[1]) else word
    if "://" in word.partition("=")[0]:
        return word
    start = 0
    while (equals := word.find("=", start)) > 0:
        if says_secret(word[start:equals]):
            return f"{word[: equals + 1]}{MASK}"
        start = equals + 1
    return word


def _address(url: str, *, every: bool) -> str:
    def parameter(found: re.Match[str]) -> str:
        mark, name, equals, value = found.groups()
        if not equals:
            return f"{mark}{MASK}" if every and name and mark in "?#" else found[0]
        hidden = value and (every or says_secret(_plain(name)))
        return f"{mark}{name}={MASK if hidden else value}"

    return _PARAMETER.sub(parameter, _USERINFO.sub(f"{MASK}@", url))


def _plain(name: str) -> str:
    from urllib.parse import unquote

    return unquote(name) if "%" in name else name


HIDDEN = "***"
"""In place of the value of a variable."""
_VALUE = r"""(?:"(?:\\.|[^"\\])*"|'[^']*'|\\.|[^\s;&|()<>"'\\`])+"""
_VARIABLE = re.compile(rf"(?<![\w.$/-])([A-Za-z_]\w*)=({_VALUE})", re.DOTALL)
_WORDS = "env|export|declare|typeset|local|readonly|sudo|doas|then|do|else"
_BEFORE = re.compile(rf"(?:^|[;&|(`{{\n]|\b(?:{_WORDS}))\s*(?:-\S+\s+)*\Z")
"""What stands before a variable, back to the beginning of its command."""
LOOKED_BACK = 100
_QUOTED = re.compile(r"""["']|\\(.)""", re.DOTALL)


def mask_assigned(text: str) -> tuple[str, list[str]]:
    """Shell text with the values of its variables masked (`TOKEN=*** ./deploy`), and these values without their quotes.

    The text need not be a whole or a valid line; rules read lines exactly (`dragoman.policy.shell`). Options such as
    `--depth=1`, and arguments such as `dd if=disk`, are no variables.
    """
    shown: list[str] = []
    values: list[str] = []
    done = 0
    for found in _VARIABLE.finditer(text):
        before = text[done : found.start()]
        follows = done > 0 and not before.strip()  # another one right before
        if not (
            found[1].isupper()
            or follows
            or _BEFORE.search(text, max(0, found.start() - LOOKED_BACK), found.start())
        ):
            continue
        shown.append(text[done : found.start(2)] + HIDDEN)
        values.append(_QUOTED.sub(lambda quoted: quoted[1] or "", found[2]))
        done = found.end()
    return "".join([*shown, text[done:]]), values
