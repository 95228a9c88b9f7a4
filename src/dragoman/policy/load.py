"""The rules in force for a workspace: the user's, the workspace's, and the administrator's file."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from dragoman.config.errors import ConfigError
from dragoman.config.files.ownership import others_may_write
from dragoman.config.load import Loaded, parse, read
from dragoman.config.model import PolicyConfig, PolicyRule
from dragoman.config.paths import ADMINISTRATOR as ADMINISTRATOR
from dragoman.config.paths import Paths
from dragoman.policy.decide import Policy
from dragoman.policy.high_water import high_water
from dragoman.policy.requests.line import act_of_command as act_of_command
from dragoman.policy.rules import Rule, Source, make_rules


def load_policy(
    loaded: Loaded, paths: Paths, administrator: Path = ADMINISTRATOR
) -> tuple[Policy, list[str]]:
    """The policy of a loaded configuration, and warnings."""
    rules, warnings = administrator_rules(administrator)
    config = loaded.config.policy
    user = make_rules(config.rules, "user", loaded.origin("policy", "rules"))
    if (why := others_may_write(Path(loaded.origin("policy", "rules")))) is not None:
        user = [rule for rule in user if rule.decision != "allow"]
        warnings = [*warnings, why]
    policy = Policy(
        user=user,
        narrow=make_rules(config.narrow, "narrow", loaded.origin("policy", "narrow")),
        administrator=rules,
        protected=protected_folders(paths),
        mark=high_water(paths.state_dir),
    )
    return policy, warnings


def policy_that_asks(config: PolicyConfig, paths: Paths, administrator: Path = ADMINISTRATOR) -> Policy:
    """For a workspace whose rules cannot be used: what `config` and the administrator deny holds, the rest is asked."""
    try:
        rules, _ = administrator_rules(administrator)
    except (ConfigError, OSError):  # it may be this file that cannot be read
        rules = []
    name = "unreadable workspace policy"
    asks = [
        PolicyRule(decision="ask", name=name),
        PolicyRule(
            decision="ask", name=name, kind=["switch_mode"]
        ),  # which a rule about everything leaves out
    ]
    return Policy(
        user=make_rules(config.rules, "user", str(paths.config_file)),
        narrow=make_rules(config.narrow, "narrow", str(paths.config_file)),
        # There no earlier rule on `kind` decides before them.
        administrator=[*rules, *make_rules(asks, "administrator", "a file that could not be read")],
        protected=protected_folders(paths),
        mark=high_water(paths.state_dir),
    )


def protected_folders(paths: Paths) -> tuple[str, ...]:
    """Our own folders, which no agent may write to, as real paths."""
    folders = (paths.config_file.parent, paths.state_dir, paths.runtime_dir)
    return tuple(dict.fromkeys(os.path.realpath(folder) for folder in folders))


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    rules: list[PolicyRule] = []


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    policy: _Table = _Table()


def administrator_rules(file: Path = ADMINISTRATOR) -> tuple[list[Rule], list[str]]:
    """The administrator's rules, and a warning if the file cannot be trusted. A broken file is an error."""
    content = read(file)
    if content is None:
        return [], []
    if (why := _writable_by_others(file)) is not None:
        return [], [f"{file}: ignored, {why}: `chown root {file}; chmod 644 {file}` (its folder: 755)"]
    return _rules_in(file, content, "administrator"), []


def rules_to_try(file: Path) -> list[Rule]:
    """Rules in a file with nothing but `[[policy.rules]]`, in the place of the user's."""
    return _rules_in(file, read(file) or b"", "user")


def _rules_in(file: Path, content: bytes, source: Source) -> list[Rule]:
    try:
        made = msgspec.convert(parse(file, content), _File)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{file}: {error}") from error
    return make_rules(made.policy.rules, source, str(file))


def _writable_by_others(file: Path) -> str | None:
    for place in (file, file.parent):
        facts = place.stat()
        if facts.st_uid != 0:
            return f"{place} does not belong to root"
        if facts.st_mode & 0o022:
            return f"others than root may write to {place}"
    return None
