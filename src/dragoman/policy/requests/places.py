"""Paths that an agent names in a request: absolute, on this machine, through symlinks."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from urllib.parse import unquote, urlsplit

from dragoman.policy.act import Access, PathFact
from dragoman.policy.shell.places import not_known, place_fact
from dragoman.policy.shell.real_paths import real_place

MAX_PATH = 4096
"""Longest path that is resolved: longer ones do not exist, and each component is looked up."""
NOT_KNOWN = "?"


class Places:
    def __init__(self, cwd: str, workspace: str, to_host: Callable[[str], str] | None, most: int) -> None:
        self._cwd = cwd
        self._workspace = workspace
        self._to_host = to_host
        self._most = most

    def facts(self, told: Sequence[object], access: Access, *, mapped: bool = False) -> list[PathFact]:
        """A fact for each path; one of an unknown shape, or one too many, is outside. `mapped`: they are host paths."""
        found = [self._fact(one, access, mapped) for one in told[: self._most]]
        if len(told) > self._most:
            found.append(not_known(NOT_KNOWN, access))
        return found

    def folder(self, told: object) -> str:
        """The folder that a shell line runs in; empty if it cannot be told."""
        place = self._place(told, mapped=False)
        path, sure = real_place(place) if place is not None else ("", False)
        return path if sure else ""

    def _fact(self, told: object, access: Access, mapped: bool) -> PathFact:
        place = self._place(told, mapped)
        if place is None:
            shown = told[:100] if isinstance(told, str) else NOT_KNOWN
            return not_known(shown or NOT_KNOWN, access)
        return place_fact(place, self._cwd, access, self._workspace)

    def _place(self, told: object, mapped: bool) -> str | None:
        """The absolute path, links and all; None if it cannot be told."""
        if not isinstance(told, str) or not told or len(told) > MAX_PATH:
            return None
        if told != told.strip():  # a tool that cuts blanks off would find another file
            return None
        path = _of_uri(told) if told[:5].lower() == "file:" else told
        if path.startswith("~"):
            path = os.path.expanduser(path)  # noqa: PTH111
        if self._to_host is not None and not mapped:
            path = self._to_host(path)
        if not path.startswith("/") and not self._cwd:
            return None
        place = os.path.join(self._cwd or "/", path)  # noqa: PTH118
        try:
            os.fsencode(place)
        except ValueError:  # half a surrogate pair
            return None
        return None if "\0" in place else place


def _of_uri(told: str) -> str:
    try:
        return unquote(urlsplit(told).path)
    except ValueError:
        return told
