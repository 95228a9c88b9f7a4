from __future__ import annotations

import pytest

from support.clients.memory_link import Wired


@pytest.fixture
def wired() -> Wired:
    return Wired()
