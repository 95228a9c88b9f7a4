"""Times on the command line: `30d`, `2h`, `today`, or a date."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import click

from dragoman.wire.timestamps import timestamp

_SPAN = re.compile(r"(\d{1,6})\s*([smhdw])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def moment(text: str, now: datetime | None = None) -> str:
    """The time that a person means, as in records: so long ago, or a local date with or without a time."""
    now = now or datetime.now(UTC)
    found = _SPAN.fullmatch(text.strip())
    if found is not None:
        return _stamp(now - timedelta(**{_UNITS[found[2]]: int(found[1])}))
    if text in ("today", "yesterday"):
        midnight = now.astimezone().replace(hour=0, minute=0, second=0, microsecond=0)
        return _stamp(midnight - timedelta(days=1) if text == "yesterday" else midnight)
    try:
        read = datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(
            f'"{text}" is no time: give 30m, 2h, 7d, today, yesterday, 2026-11-18 or 2026-11-18T08:00'
        ) from None
    return _stamp(read.astimezone())


def _stamp(when: datetime) -> str:
    return timestamp(int(when.timestamp() * 1000))


class Moment(click.ParamType[str]):
    name = "TIME"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return moment(str(value))
