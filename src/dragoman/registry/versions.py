"""Versions and packages as registries write them: `NAME@VERSION`, and which of two versions is newer."""

from __future__ import annotations

import re

from dragoman.registry.errors import RegistryError
from dragoman.registry.index import Source

_VERSION = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+_-]{0,63}")
_PACKAGES = {
    "npm": re.compile(r"((?:@[a-z0-9~-][a-z0-9._~-]*/)?[a-zA-Z0-9~-][a-zA-Z0-9._~-]*)(?:@([^@/]+))?"),
    "uv": re.compile(
        r"([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?(?:\[[A-Za-z0-9,._-]+\])?)(?:(?:==|@)(.+))?"
    ),
}
"""Name and version. Paths, URLs, repositories and aliases, which package managers take too, are no packages here."""


def split_package(source: Source, text: str) -> tuple[str, str | None]:
    """The name of a package and its version, if it tells one."""
    found = _PACKAGES[source].fullmatch(text)
    if found is None:
        raise RegistryError(f'"{text[:100]}" is not the name of a package of {source}: it is not installed')
    name, version = found[1], found[2]
    if version is not None:
        check_version(version)
    return name, version


def split_name(text: str) -> tuple[str, str | None]:
    """`NAME[@VERSION]` of a command line."""
    name, at, version = text.partition("@")
    if at:
        check_version(version)
    return name, version or None


def check_version(version: str) -> str:
    if _VERSION.fullmatch(version) is None or ".." in version:
        raise RegistryError(f'"{version[:100]}" is no version: one is written like 1.2.3')
    return version


def is_newer(version: str, than: str) -> bool:
    return _key(version) > _key(than)


def _key(version: str) -> tuple[list[tuple[int, int, str]], int, list[tuple[int, int, str]]]:
    """Numbers count as numbers; a version with a suffix such as `-beta.1` comes before the one without it."""
    release, dash, before = version.partition("+")[0].partition("-")
    return _parts(release), 0 if dash else 1, _parts(before)


def _parts(text: str) -> list[tuple[int, int, str]]:
    return [
        (1, int(part), "") if part.isdigit() else (0, 0, part) for part in re.split(r"[._]", text) if part
    ]
