"""The remote of a branch, from the repository's configuration as data: no address that names a program is used."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from dragoman.commits.checkout import Checkout
from dragoman.gateway.ports.commits import CommitError, PushPlan

ALLOWED = ("https", "http", "ssh", "git", "file")
_HELPER = re.compile(r"[A-Za-z0-9][\w+.-]*::")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_SCP = re.compile(r"(?:(?P<user>[^@/:]+)@)?(?P<host>\[[^\]]+\]|[^/:@]+):(?P<path>.*)")


def plan_push(checkout: Checkout, branch: str = "") -> PushPlan:
    """Where a branch, or the one that is checked out, would be pushed to; always to a branch of the same name."""
    commit = checkout.head(f"refs/heads/{branch}" if branch else "HEAD")
    branch = branch or checkout.branch
    if not branch:
        raise CommitError(
            f"{checkout.root} has no branch checked out (its head is detached): `git switch -c NAME` makes one",
            "detached_head",
        )
    if not commit:
        raise CommitError(f"{checkout.root} has no commit yet, so there is nothing to push", "no_commit")
    name = _name(checkout, branch)
    settings = checkout.settings
    url = settings.get(f"remote.{name}.pushurl") or settings.get(f"remote.{name}.url")
    if not url:
        raise CommitError(
            f"The remote {name} of {checkout.root} has no address: `git remote set-url {name} URL`",
            "no_remote",
        )
    shown, host, path = read_address(url, checkout.root)
    return PushPlan(checkout.root, branch, commit, name, url, shown, host, path)


def _name(checkout: Checkout, branch: str) -> str:
    settings = checkout.settings
    for key in (f"branch.{branch}.pushremote", "remote.pushdefault", f"branch.{branch}.remote"):
        if (name := settings.get(key)) and name != ".":
            return name
    names = settings.names("remote")
    if "origin" in names or len(names) == 1:
        return "origin" if "origin" in names else names[0]
    if not names:
        raise CommitError(
            f"{checkout.root} has no remote: `git remote add origin URL` makes one", "no_remote"
        )
    raise CommitError(
        f"{checkout.root} has several remotes ({', '.join(names)}) and none for {branch}: "
        f"`git config branch.{branch}.pushRemote NAME` chooses one",
        "no_remote",
    )


def read_address(url: str, root: str) -> tuple[str, str, str]:
    """An address for people, its host, and the project there; raises for one that names a program."""
    if url.startswith("-") or _HELPER.match(url) or not url.isprintable():
        raise CommitError(
            f"The address {url[:200]!r} of the remote names a program or has control characters: nothing was pushed",
            "bad_remote",
        )
    scheme = _SCHEME.match(url)
    if scheme is None:
        if (place := _SCP.fullmatch(url)) is not None and "/" not in url[: place.end("host")]:
            return url, place["host"].strip("[]").lower(), _project(place["path"])
        return url, "", str(Path(root, url))
    if scheme[1].lower() not in ALLOWED:
        raise CommitError(
            f"The address of the remote begins with {scheme[1]}://, and only {', '.join(ALLOWED)} are used",
            "bad_remote",
        )
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", f":{parts.port}" if parts.port else ""
    except ValueError as error:
        raise CommitError(f"The address of the remote cannot be read: {error}", "bad_remote") from error
    if scheme[1].lower() == "file":
        return url, "", unquote(parts.path)
    user = f"{parts.username}@" if parts.username and scheme[1].lower() == "ssh" else ""
    return f"{scheme[1]}://{user}{host}{port}{parts.path}", host, _project(parts.path)


def _project(path: str) -> str:
    return path.strip("/").removesuffix(".git")
