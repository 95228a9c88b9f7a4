"""The table of the ledger, which `store/database.py` creates with the others."""

from __future__ import annotations

STATEMENTS = (
    """CREATE TABLE usage (
        n INTEGER PRIMARY KEY, turn TEXT NOT NULL, part INTEGER NOT NULL,
        session TEXT NOT NULL, agent TEXT NOT NULL, model TEXT NOT NULL, workspace TEXT NOT NULL,
        identity TEXT NOT NULL, at TEXT NOT NULL, outcome TEXT NOT NULL, seconds REAL NOT NULL,
        input INTEGER, output INTEGER, cache_read INTEGER, cache_write INTEGER, thought INTEGER,
        amount INTEGER, currency TEXT, estimated INTEGER NOT NULL, told INTEGER, told_currency TEXT,
        UNIQUE (turn, part)
    )""",
    "CREATE INDEX usage_at ON usage (at)",
    "CREATE INDEX usage_session ON usage (session, n)",
)

COLUMNS = (
    *("turn", "part", "session", "agent", "model", "workspace", "identity", "at", "outcome", "seconds"),
    *("input", "output", "cache_read", "cache_write", "thought"),
    *("amount", "currency", "estimated", "told", "told_currency"),
)
"""All but the row's number, in the order in which the ledger writes them."""
