"""Sums of the ledger, by agent, model, session, workspace, identity, day or turn."""

from __future__ import annotations

import sqlite3
from typing import Any

from msgspec import structs

from dragoman.gateway.ports.usage import MOST_GROUPS, UNIT, Cost, Group, Report, Tokens, TurnFacts, Wanted

_DAY = "date(at, 'localtime')"
_KEYS = {
    **{name: name for name in ("agent", "model", "session", "workspace", "identity", "turn")},
    "day": _DAY,
}
_TOKENS = ", ".join(
    f"ifnull(sum({name}), 0)" for name in ("input", "output", "cache_read", "cache_write", "thought")
)
_PER_TURN = """SELECT {key} AS key, turn, max(input IS NOT NULL) AS tokens, max(amount IS NOT NULL) AS cost
    FROM usage {where} GROUP BY key, turn"""
# Sums of whole units and of billionths: the sum of all billionths may be too large for SQLite.
_COSTS = f"""sum(amount / {UNIT}), sum(amount % {UNIT}),
    sum(iif(estimated, amount, 0) / {UNIT}), sum(iif(estimated, amount, 0) % {UNIT})"""
_FACTS = "session, agent, model, workspace, identity, at, outcome, seconds"

_NOTHING = Group("total", 0, Tokens(), 0, [])

Where = tuple[str, list[str]]


def report(connection: sqlite3.Connection, wanted: Wanted) -> Report:
    """Days and turns by time, everything else by what it used, the most first."""
    where = _where(wanted)
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'usage'").fetchone():
        return Report(wanted.by, [], _NOTHING)  # a database of an older version, opened for reading
    connection.execute("BEGIN")  # one state of the ledger for all queries
    try:
        groups = _groups(connection, _KEYS[wanted.by], where)
        total = _groups(connection, "'total'", where)
        if wanted.by == "turn":
            groups = _with_facts(connection, groups, where)
        if wanted.by == "session":
            groups = _with_titles(connection, groups)
    finally:
        connection.execute("COMMIT")
    if wanted.by == "day":
        groups.sort(key=lambda group: group.key)
    elif wanted.by == "turn":
        groups.sort(key=lambda group: group.turn.at if group.turn is not None else "")
    else:
        groups.sort(key=lambda group: (-_largest(group), -group.total_tokens, group.key))
    more = len(groups) > MOST_GROUPS
    if more:  # of turns and days the newest
        groups = groups[-MOST_GROUPS:] if wanted.by in ("day", "turn") else groups[:MOST_GROUPS]
    return Report(wanted.by, groups, total[0] if total else _NOTHING, more)


def _where(wanted: Wanted) -> Where:
    tests, values = ["1"], []
    for test, value in (("at >= ?", wanted.since), ("at < ?", wanted.until)):
        if value is not None:
            tests.append(test)
            values.append(value)
    for name in ("agent", "model", "session", "workspace", "identity"):
        value = getattr(wanted, name)
        if value is not None:
            tests.append(f"{name} = ?")
            values.append(value)
    return f"WHERE {' AND '.join(tests)}", values


def _groups(connection: sqlite3.Connection, key: str, where: Where) -> list[Group]:
    test, values = where
    costs: dict[str, list[Cost]] = {}
    query = f"SELECT {key} AS key, currency, {_COSTS} FROM usage {test} AND amount IS NOT NULL GROUP BY key, currency"
    for name, currency, *parts in connection.execute(query, values):
        amount, estimated = parts[0] * UNIT + parts[1], parts[2] * UNIT + parts[3]
        costs.setdefault(name, []).append(Cost(currency, amount / UNIT, estimated / UNIT))
    turns = f"""SELECT key, count(*), sum(NOT tokens AND NOT cost), sum(tokens AND NOT cost)
        FROM ({_PER_TURN.format(key=key, where=test)}) GROUP BY key"""
    counted = {name: numbers for name, *numbers in connection.execute(turns, values)}
    groups = []
    query = f"SELECT {key} AS key, {_TOKENS} FROM usage {test} GROUP BY key"
    for name, *numbers in connection.execute(query, values):
        tokens = Tokens(*numbers)
        count, unknown, unpriced = counted[name]
        found = sorted(costs.get(name, ()), key=lambda cost: (-cost.amount, cost.currency))
        groups.append(Group(name, count, tokens, tokens.total, found, unknown, unpriced))
    return groups


def _with_facts(connection: sqlite3.Connection, groups: list[Group], where: Where) -> list[Group]:
    rows: dict[str, tuple[Any, ...]] = {}
    test, values = where
    for turn, *facts in connection.execute(
        f"SELECT turn, {_FACTS} FROM usage {test} ORDER BY n DESC", values
    ):
        rows[turn] = tuple(facts)  # the first part last
    return [structs.replace(group, turn=TurnFacts(*rows[group.key])) for group in groups]


def _with_titles(connection: sqlite3.Connection, groups: list[Group]) -> list[Group]:
    titles = dict(connection.execute("SELECT id, title FROM directory WHERE title IS NOT NULL"))
    return [structs.replace(group, title=titles.get(group.key)) for group in groups]


def _largest(group: Group) -> float:
    return max((cost.amount for cost in group.costs), default=0.0)
