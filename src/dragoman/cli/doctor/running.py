"""Runs checks beside each other, each with a time limit: one that hangs or fails is a line of the report.

Threads are daemons: Python cannot end a thread, so one that hangs ends with the command.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from dragoman.cli.doctor.finding import Check, Context, Finding, Reported
from dragoman.masking import mask

TICK = 0.2
"""Seconds between two calls of `told`: a check tells how far it is."""


@dataclass(slots=True)
class _Running:
    check: Check
    until: float
    found: list[Finding] = field(default_factory=list)


def run_checks(
    checks: Sequence[Check],
    context: Context,
    seconds: float | None = None,
    told: Callable[[Sequence[str]], object] = lambda waiting: None,
) -> list[Reported]:
    """What the checks find, in their order; `told` hears the names of those that still run, again and again.

    `seconds` replaces the time limit of each.
    """
    ended: queue.SimpleQueue[str] = queue.SimpleQueue()
    now = time.monotonic()
    running = {
        check.name: _Running(check, now + (check.seconds if seconds is None else seconds)) for check in checks
    }
    waiting = dict(running)
    for one in running.values():
        threading.Thread(
            target=_run, args=(one, context, ended), name=f"doctor {one.check.name}", daemon=True
        ).start()
    while waiting:
        told(list(waiting))
        first = min(waiting.values(), key=lambda one: one.until)
        left = first.until - time.monotonic()
        try:
            waiting.pop(ended.get(timeout=max(0.0, min(left, TICK))), None)
        except queue.Empty:
            if left > TICK:
                continue
            del waiting[first.check.name]
            first.found = [*first.found, _late(first.check, seconds)]  # the thread goes on with the old list
    return [Reported(one.check.name, _safe(found)) for one in running.values() for found in one.found]


def _run(one: _Running, context: Context, ended: queue.SimpleQueue[str]) -> None:
    found = one.found
    try:
        for finding in one.check.run(context):
            found.append(finding)
    except Exception as error:  # noqa: BLE001 (a check that fails is a line of the report)
        text = f"this check failed: {type(error).__name__}: {error}"
        fix = "this is a mistake in Dragoman: please report it with this line"
        found.append(Finding("error", one.check.name, text, fix))
    finally:
        ended.put(one.check.name)


def _late(check: Check, seconds: float | None) -> Finding:
    limit = check.seconds if seconds is None else seconds
    return Finding(
        "warning",
        check.name,
        f"this check did not end within {limit:g} s, and was left",
        f"run `dragoman doctor {check.name} --timeout {limit * 10:g}`; if that does not end either, see whether a disk "
        "or a program hangs",
    )


def _safe(finding: Finding) -> Finding:
    """The finding without secrets: programs and addresses are quoted in it."""
    return replace(finding, detail=mask(finding.detail), fix=mask(finding.fix))
