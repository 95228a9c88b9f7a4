"""What came of a command is known again, and whose commands crowd out which."""

from __future__ import annotations

from dragoman.bridge import limits
from dragoman.bridge.bridge import RecentCommands


async def test_a_command_that_is_being_done_is_never_forgotten() -> None:
    seen = RecentCommands()
    slow = seen.begin(("me", "new"))
    for number in range(limits.REMEMBERED_COMMANDS + 5):
        seen.begin(("me", f"{number}"))
        seen.end(("me", f"{number}"), None)
    assert seen.get(("me", "new")) is slow
    seen.end(("me", "new"), "dgm_1")
    assert await slow == "dgm_1"
    assert seen.get(("me", "0")) is None  # of those that were done, the oldest


async def test_what_one_token_does_is_not_forgotten_for_anothers_sake() -> None:
    seen = RecentCommands()
    seen.begin(("me", "new"))
    seen.end(("me", "new"), "dgm_1")
    for number in range(limits.REMEMBERED_COMMANDS + 5):
        seen.begin(("you", f"{number}"))
        seen.end(("you", f"{number}"), None)
    former = seen.get(("me", "new"))
    assert former is not None and former.result() == "dgm_1"
