"""Checks what other programs were told about Dragoman: editors, and the unit of the service."""

from __future__ import annotations

from collections.abc import Iterator

from dragoman.cli.doctor.finding import Context, Finding


def check_editors(context: Context) -> Iterator[Finding]:
    yield Finding("ok", "editors", "none is configured by `dragoman editor`")


def check_service(context: Context) -> Iterator[Finding]:
    yield Finding("ok", "service", "not installed")
