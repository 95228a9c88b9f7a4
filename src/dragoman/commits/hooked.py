"""A commit by plain git, with the hooks, filters and signing of the repository: only if a person allows it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from dragoman.checkpoints.names import shown
from dragoman.commits import programs
from dragoman.commits.checkout import Checkout
from dragoman.commits.committing import clean_message
from dragoman.commits.selection import check_branch
from dragoman.gateway.ports.commits import CommitError, CommitPlan, Committed


def commit(checkout: Checkout, plan: CommitPlan, message: str) -> Committed:
    check_branch(checkout)
    text = clean_message(message)
    env = programs.environment(GIT_LITERAL_PATHSPECS="1", GIT_EDITOR="true")
    given = b"\0".join(plan.names)
    listed = ("--pathspec-from-file=-", "--pathspec-file-nul")
    known = set(checkout.project.run("ls-files", "-z", index=checkout.own / "index").split(b"\0"))
    new = b"\0".join(name for name in plan.names if name not in known)
    with tempfile.TemporaryDirectory(prefix="dragoman-") as folder:
        file = Path(folder, "message")
        file.write_text(text)
        if new:
            _git(checkout, env, "add", "--intent-to-add", *listed, given=new)
        try:
            _git(checkout, env, "commit", "-q", "--only", "-F", str(file), *listed, given=given)
        except CommitError:
            if new:
                _git(checkout, env, "rm", "-q", "-f", "--cached", "--ignore-unmatch", *listed, given=new)
            raise
    files = [shown(name) for name in plan.names]
    return Committed(checkout.head(), plan.branch, files, list(plan.left))


def _git(checkout: Checkout, env: dict[str, str], *words: str, given: bytes) -> None:
    done = programs.run([checkout.program.path, *words], os.fspath(checkout.root), env, given)
    if done.code:
        raise CommitError(f"git {words[0]} failed, nothing was committed: {done.said}", "git_failed")
