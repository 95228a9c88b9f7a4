"""One remembered answer: its patterns, where it holds, until when, and who gave it."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, get_args

import msgspec

from dragoman.policy.act import Act
from dragoman.policy.memory.pattern import MAX_BYTES, MAX_PARTS, NotRemembered, Pattern, read_text, words_of
from dragoman.policy.rules import Rule, end_of, make_rules

Scope = Literal["session", "project", "everywhere"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
WHERE = {"session": "in this session", "project": "in this project", "everywhere": "everywhere"}
NAME = "remembered"
"""Records name a memory `remembered ID`; clients must not use such a name for a rule of their own."""
MAX_UNTIL = timedelta(days=366)
_DURATION = re.compile(r"(\d{1,4})([mhd])")
_UNITS = {"m": "minutes", "h": "hours", "d": "days"}


class Memory(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    id: str
    decision: Literal["allow", "deny"] = "allow"
    pattern: list[Pattern]
    scope: Scope
    root: str
    """Root of the repository that it was said in; the only one that a memory of a project holds for."""
    session: str
    """The session that asked; the only one that a memory of a session holds for."""
    call: str
    who: str
    when: str
    until: str | None = None

    @property
    def name(self) -> str:
        return f"{NAME} {self.id}"

    @property
    def words(self) -> str:
        return words_of(self.pattern, self.root)

    def holds(self, now: datetime) -> bool:
        """Whether it is in force. One that ends is not before it began: that clock cannot tell the end either."""
        if self.until is None:
            return True
        return end_of(self.when) <= now < end_of(self.until)

    def is_for(self, session: str, root: str) -> bool:
        held = {"session": bool(session) and self.session == session, "project": self.root == root}
        return held.get(self.scope, self.scope == "everywhere")

    def rules(self) -> list[Rule]:
        """For the order of authority. `until` is checked by `holds`, which also knows when it began."""
        said = f"{WHERE[self.scope]}, by {self.who} on {self.when[:10]}"
        rules = [pattern.rule(self.decision, self.name, self.until) for pattern in self.pattern]
        return make_rules(rules, "remembered", said)

    def facts(self) -> dict[str, Any]:
        """As JSON for commands, REST and the page."""
        return {**msgspec.to_builtins(self), "words": self.words}


class Wish(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`_meta.dragoman.remember` of an answer: what the person wants us to remember, where and for how long."""

    scope: Scope
    until: str | None = None
    """`1h`, `30m`, `2d`, `today`, or a moment such as `2027-01-31T18:00+01:00`."""
    pattern: list[Pattern | str] | None = None
    """As objects or as lines (`Pattern.text`); None: the one that was shown."""

    def patterns(self, shown: Sequence[Pattern], root: str) -> list[Pattern]:
        """What is to be remembered; raises `NotRemembered`."""
        if self.pattern is None:
            return list(shown)
        made = [read_text(one, shown, root) if isinstance(one, str) else one for one in self.pattern]
        if not all(pattern.about_something for pattern in made):
            raise NotRemembered("Each entry of a pattern names commands, paths, hosts or mcp.")
        return made


def read_wish(told: object) -> Wish:
    """A checked wish; raises `NotRemembered` for anything else than its shape."""
    try:
        wish = msgspec.convert(told, Wish)
    except msgspec.ValidationError as error:
        raise NotRemembered(f"`remember` is not {{scope, until, pattern}}: {error}") from error
    if wish.pattern is not None:
        if not wish.pattern or len(wish.pattern) > MAX_PARTS:
            raise NotRemembered(f"A pattern has 1 to {MAX_PARTS} entries.")
        if len(msgspec.json.encode(wish.pattern)) > MAX_BYTES:
            raise NotRemembered(f"The pattern is longer than {MAX_BYTES} bytes.")
    return wish


def memory_of(
    act: Act,
    patterns: Sequence[Pattern],
    scope: Scope,
    until: str | None,
    *,
    call: str,
    who: str,
    now: datetime,
) -> Memory:
    """A new memory of an act."""
    return Memory(
        id=f"m_{secrets.token_hex(5)}",
        pattern=list(patterns),
        scope=scope,
        root=act.project or act.workspace,
        session=act.session,
        call=call,
        who=who,
        when=now.isoformat(timespec="seconds"),
        until=end_from(until, now).isoformat(timespec="seconds") if until is not None else None,
    )


def end_from(text: str, now: datetime) -> datetime:
    """The moment that `1h`, `today` or a written moment ends; raises `NotRemembered`."""
    here = now.astimezone()
    if text == "today":
        return here.replace(hour=23, minute=59, second=59, microsecond=0)
    if (found := _DURATION.fullmatch(text)) is not None:
        end = here + timedelta(**{_UNITS[found[2]]: int(found[1])})
    else:
        end = end_of(text)
        if end == datetime.min.replace(tzinfo=UTC):
            raise NotRemembered(
                f"{text[:40]!r} is no time: use 1h, 30m, 2d, today or 2027-01-31T18:00+01:00."
            )
    if not now < end <= now + MAX_UNTIL:
        raise NotRemembered(f"{text[:40]!r} is not in the coming {MAX_UNTIL.days} days.")
    return end
