"""Actions run at their place in the order of a session's events: an answer, a question, the end of a replay.

Actions are independent. An action that raises is a bug of ours; the error is logged, and the actions after it, which
belong to other clients and requests, still run.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

log = logging.getLogger(__name__)

Action = Callable[[], None]


def run(action: Action, session_id: str) -> None:
    """Run one action; never raises."""
    try:
        action()
    except Exception:
        log.exception("an action failed; those behind it go on", extra={"session": session_id})
