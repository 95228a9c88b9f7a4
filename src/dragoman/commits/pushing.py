"""Pushes a branch. The repository's own configuration is not used: the user's has credentials and ways to a host.

A remote that is a folder of this machine runs its own git to receive; that one gets no hooks either.
"""

from __future__ import annotations

from contextlib import suppress

from dragoman.commits import programs
from dragoman.commits.checkout import Checkout
from dragoman.commits.remotes import ALLOWED
from dragoman.gateway.ports.checkpoints import CheckpointError
from dragoman.gateway.ports.commits import CommitError, Pushed, PushPlan

RECEIVING = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.alternateRefsCommand": "true",
    "receive.denyCurrentBranch": "refuse",
    "receive.autogc": "false",
}
"""What a repository on this machine is not asked about when it receives."""


def push(checkout: Checkout, plan: PushPlan, *, hooks: bool) -> Pushed:
    ref = f"refs/heads/{plan.branch}"
    if hooks:
        words = [checkout.program.path, "push", "--porcelain", plan.remote, f"{ref}:{ref}"]
        done = programs.run(words, plan.root, programs.environment())
    else:
        done = _push_ours(checkout, plan, ref)
    row = next((line for line in done.out.splitlines() if line[1:2] == "\t"), "")
    if done.code:
        raise CommitError(_why(plan, row, _hidden(plan, done.said)), "push_failed")
    with suppress(CheckpointError):  # as git does for a push by the name of a remote
        checkout.project.run("update-ref", f"refs/remotes/{plan.remote}/{plan.branch}", plan.commit)
    return Pushed(plan.remote, plan.shown, plan.branch, plan.commit, changed=not row.startswith("="))


def _push_ours(checkout: Checkout, plan: PushPlan, ref: str) -> programs.Done:
    with checkout.scratch(keep=True) as git:
        ours = git.environment()
        names = ("GIT_DIR", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES")
        env = programs.environment(
            **{name: ours[name] for name in names}, GIT_ALLOW_PROTOCOL=":".join(ALLOWED)
        )
        words = [checkout.program.path, "push", "--porcelain", "--no-verify"]
        if not plan.host:
            off = " ".join(f"-c {key}={value}" for key, value in RECEIVING.items())
            words.append(f"--receive-pack=git {off} receive-pack")
        words += ["--", plan.url if plan.host else plan.path, f"{plan.commit}:{ref}"]
        return programs.run(words, str(git.directory), env)


def _hidden(plan: PushPlan, text: str) -> str:
    """What git said, without a password in the address."""
    return text.replace(plan.url, plan.shown)


def _why(plan: PushPlan, row: str, said: str) -> str:
    where = f"{plan.branch} to {plan.remote} ({plan.shown})"
    if "non-fast-forward" in row or "fetch first" in row:
        return (
            f"{where} was not pushed: the remote has commits that are not here. `git pull --rebase` brings them, then "
            "try again"
        )
    return f"{where} was not pushed: {said or 'git said nothing'}"
