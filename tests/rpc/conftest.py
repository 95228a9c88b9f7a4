from __future__ import annotations

import pytest

from support.links import Wired


@pytest.fixture
def wired() -> Wired:
    return Wired()
