"""Kinds of parts that tests need and a machine may lack, and the account of what was skipped for want of them.

A test that cannot run is skipped with a reason; at the end the reasons are counted. Under CI (the variable `CI`) a run
fails for which a required kind was missing: the reasons of a green run are not read.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from typing import NoReturn

import pytest

REQUIRED = {
    "chromium": "apt-get install chromium-headless-shell, or chromium",
    "web chat": "make web",
    "bubblewrap": "apt-get install bubblewrap",
    "ssh": "apt-get install openssh-server openssh-client",
    "podman": "apt-get install podman runc",
}
"""By kind, how to get it."""

_MISSING = re.compile(r"(?:Skipped: )?NO (.+?): ")


def missing(kind: str, why: str) -> str:
    """The reason for skipping a test."""
    return f"NO {kind.upper()}: {why} ({REQUIRED[kind]})"


def skip(kind: str, why: str) -> NoReturn:
    pytest.skip(missing(kind, why))


def under_ci() -> bool:
    return os.environ.get("CI", "").lower() not in ("", "0", "false", "no")


class SkipAccount:
    """A plugin for pytest."""

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if under_ci() and self._lacking(session.config) and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter, config: pytest.Config
    ) -> None:
        reasons = _reasons(config)
        if not reasons:
            return
        terminalreporter.section(f"{reasons.total()} tests were skipped")
        for reason, count in reasons.most_common():
            terminalreporter.write_line(f"{count:4}  {reason}")
        lacking = self._lacking(config)
        for kind in lacking:
            verdict = "CI must have it: this run has failed" if under_ci() else "get it with"
            terminalreporter.write_line(f"NO {kind.upper()}: {verdict}: {REQUIRED[kind]}", red=under_ci())

    def _lacking(self, config: pytest.Config) -> list[str]:
        found = {match[1].lower() for reason in _reasons(config) if (match := _MISSING.match(reason))}
        return [kind for kind in REQUIRED if kind in found]


def _reasons(config: pytest.Config) -> Counter[str]:
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", []) if reporter is not None else []
    texts = (
        report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        for report in skipped
    )
    return Counter(text.removeprefix("Skipped: ") for text in texts)
