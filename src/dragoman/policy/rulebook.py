"""The rules in force by workspace, read again when one of their files has changed.

Files are looked at with a decision, at most once a second. A file that is broken, or whose rules fail their own
examples, leaves the rules in force that were. At the first reading there are none: then all that can be read and
denies, or wants approvals, holds, and everything else is asked.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from dragoman.config.errors import ConfigError
from dragoman.config.load import Loaded
from dragoman.config.model import PolicyConfig
from dragoman.config.paths import Paths
from dragoman.config.root import WORKSPACE_FILE
from dragoman.policy.check import Bound, check_examples
from dragoman.policy.decide import Policy
from dragoman.policy.examples import try_examples
from dragoman.policy.load import ADMINISTRATOR, load_policy, policy_that_asks
from dragoman.policy.rules import make_rules
from dragoman.policy.widening import find_wider

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
"""An agent may ask thousands of times a second; the files are not looked at more often than this."""

MOST_WORKSPACES = 2000
"""Workspaces that are remembered: clients may ask about any folder. One that was dropped is read again."""

Stamps = tuple[tuple[int, int, int] | None, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """What people of a workspace's sessions are told."""

    workspace: str
    text: str
    severity: str


@dataclass(frozen=True, slots=True)
class Renewal:
    """Changed files of a workspace: for the audit, before the rules hold."""

    workspace: str
    files: tuple[Path, ...]
    """Those that were changed, made or removed."""
    before: str
    after: str | None
    """Digests of the rules; None if the changed ones cannot be used."""
    wider: tuple[str, ...] = ()
    trouble: str | None = None


@dataclass(slots=True)
class _Entry:
    policy: Policy
    stamps: Stamps
    looked: float
    trouble: str | None = None


class Rulebook:
    def __init__(
        self,
        load: Callable[[Path | None], Loaded],
        config: PolicyConfig,
        paths: Paths,
        administrator: Path = ADMINISTRATOR,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`load` reads the settings for a workspace, or without one; `config` holds where they never could be read."""
        self._load = load
        self._config = config
        self._paths = paths
        self._administrator = administrator
        self._clock = clock
        self._entries: dict[str, _Entry] = {}
        self.on_change: Callable[[Change], None] = lambda change: None
        self.on_renewal: Callable[[Renewal], None] = lambda renewal: None
        self.on_first: Callable[[Path], None] = lambda file: None
        """Called with the file of a workspace whose rules are read for the first time."""

    def policy_for(self, workspace: str) -> Policy:
        """The rules in force for a workspace now."""
        entry, now = self._entries.get(workspace), self._clock()
        if entry is not None and 0 <= now - entry.looked < LOOK_SECONDS:
            return entry.policy
        stamps = self._stamps(workspace)
        if entry is None:
            return self._first(workspace, stamps, now)
        entry.looked = now
        if stamps != entry.stamps:
            files = self._files(workspace)
            changed = [file for file, was, now in zip(files, entry.stamps, stamps, strict=True) if was != now]
            entry.stamps = stamps
            self._renew(workspace, entry, tuple(changed))
        return entry.policy

    def trouble(self, workspace: str) -> str | None:
        """Why the files of a workspace are not what is in force; None if they are."""
        entry = self._entries.get(workspace)
        return entry.trouble if entry is not None else None

    def read(self, workspace: str) -> Policy:
        """The rules as the files say now; raises `ConfigError` if they are broken or fail their examples."""
        policy, warnings = load_policy(self._load(Path(workspace)), self._paths, self._administrator)
        for warning in warnings:
            log.warning("%s", warning)
        problems = try_examples(policy, self._paths.state_dir)
        if problems:
            raise ConfigError("\n".join(map(str, problems)))
        return policy

    def _first(self, workspace: str, stamps: Stamps, now: float) -> Policy:
        try:
            entry = _Entry(self.read(workspace), stamps, now)
        except ConfigError as error:
            log.error("the policy cannot be used; every permission is asked for: %s", error)
            asks = policy_that_asks(self._usable(workspace), self._paths, self._administrator)
            entry = _Entry(asks, stamps, now, str(error))
        self._entries[workspace] = entry
        self.on_first(Path(workspace, WORKSPACE_FILE))
        if len(self._entries) > MOST_WORKSPACES:
            del self._entries[next(iter(self._entries))]
        if entry.trouble is not None:
            told = f"The policy cannot be used, so that everything is asked: {entry.trouble}"
            self.on_change(Change(workspace, told, "error"))
        return entry.policy

    def _usable(self, workspace: str) -> PolicyConfig:
        """What can be read of the settings, without rules of the workspace that fail their own examples."""
        own = self._readable(None) or self._config
        whole = self._readable(Path(workspace)) or own
        given = make_rules(whole.narrow, "narrow", "")
        failed = {problem.rule for problem in check_examples(given, Bound())}
        narrow = [rule.config for rule in given if rule.config in own.narrow or rule.name not in failed]
        return msgspec.structs.replace(whole, narrow=narrow)

    def _readable(self, workspace: Path | None) -> PolicyConfig | None:
        try:
            return self._load(workspace).config.policy
        except ConfigError:
            return None

    def _renew(self, workspace: str, entry: _Entry, files: tuple[Path, ...]) -> None:
        before = entry.policy.digest
        try:
            policy = self.read(workspace)
        except ConfigError as error:
            entry.trouble = str(error)
            self.on_renewal(Renewal(workspace, files, before, None, trouble=entry.trouble))
            log.error("the changed policy cannot be used; the rules before it stay in force: %s", error)
            told = f"The changed policy cannot be used, and the rules before it stay in force: {error}"
            self.on_change(Change(workspace, told, "error"))
            return
        wider, was_broken = find_wider(entry.policy, policy), entry.trouble is not None
        self.on_renewal(Renewal(workspace, files, before, policy.digest, tuple(wider)))
        entry.policy, entry.trouble = policy, None
        log.info("the policy has changed", extra={"workspace": workspace, "wider": len(wider)})
        if wider:
            told = f"The policy has changed and allows more than before: {'; '.join(wider)}."
            self.on_change(Change(workspace, told, "warning"))
        elif was_broken:
            self.on_change(Change(workspace, "The changed policy is in force now.", "info"))

    def _files(self, workspace: str) -> tuple[Path, ...]:
        administrator = self._administrator
        return (
            self._paths.config_file,
            Path(workspace, WORKSPACE_FILE),
            administrator,
            administrator.parent,
        )

    def _stamps(self, workspace: str) -> Stamps:
        return tuple(_stamp(file) for file in self._files(workspace))


def _stamp(file: Path) -> tuple[int, int, int] | None:
    try:
        state = file.stat()
    except OSError:
        return None
    return state.st_mtime_ns, state.st_ctime_ns, state.st_ino  # of ctime: who may write it
