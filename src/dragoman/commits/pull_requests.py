"""Opens a pull request with the program of the remote's host: `gh` for GitHub, `glab` for GitLab.

It runs in an empty folder and is told the project by name: in the work tree it would run git with the repository's
configuration.
"""

from __future__ import annotations

import re
import shlex
import tempfile
from urllib.parse import quote

from dragoman.commits import programs
from dragoman.commits.checkout import Checkout
from dragoman.gateway.ports.commits import CommitError, CommitWish, PullRequestPlan, PushPlan

_ADDRESS = re.compile(r"https?://\S+")
LONGEST_TITLE = 200


def plan_pull_request(checkout: Checkout, push: PushPlan, wish: CommitWish) -> PullRequestPlan:
    """The command for a pull request of the branch, with the message of its last commit."""
    title, body = _message(checkout, push.commit)
    kind = _kind(push)
    if not kind or not push.path:
        raise CommitError(
            f"No program is known that opens a pull request at {push.host or push.shown}: open one for the branch "
            f"{push.branch} there by hand (`gh` is for GitHub, `glab` for GitLab)",
            "no_host",
        )
    if kind == "gh":
        words = ["gh", "pr", "create", "--repo", f"{push.host}/{push.path}", "--head", push.branch]
        words += ["--base", wish.base] if wish.base else []
        words += ["--title", title, "--body", body]
        page = f"https://{push.host}/{push.path}/compare/{quote(push.branch)}?expand=1"
    else:
        words = [
            "glab",
            "mr",
            "create",
            "--repo",
            f"https://{push.host}/{push.path}",
            "--source-branch",
            push.branch,
        ]
        words += ["--target-branch", wish.base] if wish.base else []
        words += ["--title", title, "--description", body, "--yes"]
        source = quote(push.branch, safe="")
        page = (
            f"https://{push.host}/{push.path}/-/merge_requests/new?merge_request%5Bsource_branch%5D={source}"
        )
    words += ["--draft"] if wish.draft else []
    by_hand = f"`{shlex.join(words)}` opens it where {kind} is installed, or {page} in a browser"
    return PullRequestPlan(tuple(words), programs.find_program(kind, push.root), title, by_hand)


def open_pull_request(plan: PullRequestPlan) -> str:
    if not plan.program:
        raise CommitError(
            f"There is no program `{plan.words[0]}` on the PATH, so no pull request was opened: {plan.by_hand}",
            "no_program",
        )
    quiet = {
        "GH_PROMPT_DISABLED": "1",
        "GH_NO_UPDATE_NOTIFIER": "1",
        "GLAB_CHECK_UPDATE": "0",
        "NO_COLOR": "1",
    }
    with tempfile.TemporaryDirectory(prefix="dragoman-") as folder:
        # no repository above the folder counts: git would read its configuration
        env = programs.environment(**quiet, GIT_CEILING_DIRECTORIES=folder)
        done = programs.run([plan.program, *plan.words[1:]], folder, env)
    if done.code:
        raise CommitError(
            f"No pull request was opened, {plan.words[0]} said: {done.said or 'nothing'}",
            "pull_request_failed",
        )
    found = _ADDRESS.findall(done.out) or _ADDRESS.findall(done.err)
    return found[-1] if found else ""


def _kind(push: PushPlan) -> str:
    for name, program in (("github", "gh"), ("gitlab", "glab")):
        if name in push.host:
            return program
    return ""


def _message(checkout: Checkout, commit: str) -> tuple[str, str]:
    with checkout.scratch() as git:
        text = git.run("cat-file", "commit", commit).decode(errors="replace").partition("\n\n")[2]
    subject, _, body = text.strip().partition("\n")
    return subject.strip()[:LONGEST_TITLE] or commit[:12], body.strip()
