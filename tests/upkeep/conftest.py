"""Fixtures: a store with some sessions."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.store import FileStore
from support.store.store_process import append, begin


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
async def filled(state: Path, tmp_path: Path) -> list[str]:
    """Three sessions in a store that is closed; beside them what else a state folder may have."""
    store = await FileStore.open(state / "dragoman.db", tmp_path / "run")
    ids = []
    for n in range(3):
        session = await begin(store, f"{n}", minute=n, title=f"Talk {n}", agent_session_id=f"a{n}")
        await append(store, session, 1, [b"%d" % seq for seq in range(1, 101)])
        ids.append(session)
    await store.close()
    (state / "tokens.json").write_text('{"secret": 1}')
    (state / "audit").mkdir()
    (state / "audit" / "one.ndjson").write_text("{}\n")
    (state / "run").mkdir()
    (state / "run" / "token").write_text("not to be kept")
    return ids
