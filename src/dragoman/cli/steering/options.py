"""Options that a session's agent offers, by their id or by what they are about: `mode`, `model`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from dragoman.config.errors import ConfigError
from dragoman.config.schema import suggest

if TYPE_CHECKING:
    from dragoman.client import Session
    from dragoman.wire.json_types import JsonObject


async def set_options(session: Session, settings: Iterable[tuple[str, str]]) -> None:
    """Set options in this order; raises `ConfigError` with what there is if one cannot be."""
    for name, value in settings:
        option = _find(session, name)
        if option is None and name == "mode":
            await session.set_mode(value)  # of an agent that has modes and no options
        else:
            await session.set_option(*_checked(session, name, option, value))


def _find(session: Session, name: str) -> JsonObject | None:
    options = list(session.options)
    by_id = (option for option in options if option.get("id") == name)
    by_category = (option for option in options if option.get("category") == name)
    return next(by_id, None) or next(by_category, None)


def _checked(session: Session, name: str, option: JsonObject | None, value: str) -> tuple[str, object]:
    if option is None:
        names = [str(offered.get("id")) for offered in session.options]
        there = ", ".join(names) or "none"
        raise ConfigError(f'the session has no option "{name}"{suggest(name, names)}; it has: {there}')
    if option.get("type") == "boolean":
        if value not in ("true", "false"):
            raise ConfigError(f'the option "{name}" is true or false, not "{value}"')
        return str(option.get("id")), value == "true"
    values = _values(option.get("options"))
    if values and value not in values:
        there = ", ".join(values)
        raise ConfigError(
            f'the option "{name}" has no value "{value}"{suggest(value, values)}; it has: {there}'
        )
    return str(option.get("id")), value


def _values(offered: object) -> list[str]:
    """The values of an option, also those in groups."""
    found: list[str] = []
    for entry in offered if isinstance(offered, list) else []:
        if isinstance(entry, dict):
            inner = entry.get("options")
            found += _values(inner) if isinstance(inner, list) else [str(entry.get("value"))]
    return found
