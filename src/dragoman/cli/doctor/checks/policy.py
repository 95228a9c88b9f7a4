"""Checks the rules: files that others may write, rules that cannot match, examples that fail."""

from __future__ import annotations

from collections.abc import Iterator

from dragoman.cli.doctor.finding import Context, Finding, counted
from dragoman.config.errors import ConfigError


def check(context: Context) -> Iterator[Finding]:
    from dragoman.policy.check import check_policy
    from dragoman.policy.load import load_policy

    if context.trouble is not None:
        yield Finding(
            "warning", "policy", "the rules were not checked, since the configuration cannot be read",
            "mend the configuration first",
        )  # fmt: skip
    try:
        policy, warnings = load_policy(context.loaded, context.paths)
    except ConfigError as error:
        file, _, what = str(error).partition(": ")
        yield Finding(
            "error", file, what, f"mend {file}: sessions cannot begin while its rules are not known"
        )
        return
    for warning in warnings:
        what, _, fix = warning.rpartition(": ")
        yield Finding("error", "rules", what, fix)
    problems = check_policy(policy, list(context.loaded.config.agents))
    for problem in problems:
        fix = f"change the rule in {problem.file}; `dragoman policy check` tries it again"
        yield Finding(problem.severity, f"rule {problem.rule}", problem.text, fix)
    if not problems and not warnings and context.trouble is None:
        count = len(policy.user) + len(policy.narrow) + len(policy.administrator)
        yield Finding(
            "ok",
            "rules",
            f"{counted(count, 'rule')}, no problem found" if count else "none: a person is asked",
        )
