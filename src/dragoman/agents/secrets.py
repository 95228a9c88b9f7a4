"""Resolves references to an agent's secrets: a variable, a file or the system's keyring."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from dragoman.agents.environment import inherited

KEYRING_PATIENCE = 30.0
"""Seconds to wait for a keyring, which may ask the user to unlock it."""


class SecretError(Exception):
    """A secret cannot be read; the message says why."""


async def resolve_secrets(secrets: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """The values of `{VARIABLE: reference}`; a reference is `env:NAME`, `file:PATH` or `keyring:SERVICE/ACCOUNT`."""
    found = {name: await _resolve(name, reference, environ) for name, reference in secrets.items()}
    for tell in _listeners:
        tell(found.values())
    return found


def on_resolved(tell: Callable[[Iterable[str]], None]) -> Callable[[], None]:
    """Call `tell` with all values that this process resolves, so that they are hidden; returns how to end that."""
    _listeners.append(tell)
    return lambda: _listeners.remove(tell)


_listeners: list[Callable[[Iterable[str]], None]] = []


async def _resolve(name: str, reference: str, environ: Mapping[str, str]) -> str:
    kind, _, where = reference.partition(":")
    if kind == "env":
        if where not in environ:
            raise SecretError(f"{name} comes from the variable {where}, which is not set")
        return environ[where]
    if kind == "file":
        try:
            return Path(where).expanduser().read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise SecretError(f"{name} comes from the file {where}, which cannot be read: {error}") from error
    if kind == "keyring":
        return await _from_keyring(name, where)
    raise SecretError(f"{name}: expected env:NAME, file:PATH or keyring:SERVICE/ACCOUNT, got {reference!r}")


async def _from_keyring(name: str, where: str) -> str:
    service, _, account = where.partition("/")
    command = (
        ["security", "find-generic-password", "-w", "-s", service, *(["-a", account] if account else [])]
        if sys.platform == "darwin"
        else ["secret-tool", "lookup", "service", service, *(["account", account] if account else [])]
    )
    try:
        child = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=inherited(os.environ),
        )
    except OSError as error:
        raise SecretError(f"{name} comes from the keyring, which needs the program {command[0]}") from error
    try:
        async with asyncio.timeout(KEYRING_PATIENCE):
            output, _ = await child.communicate()
    except TimeoutError as error:
        child.kill()
        raise SecretError(f"{name}: the keyring did not answer within {KEYRING_PATIENCE:g} s") from error
    if child.returncode != 0 or not output:
        raise SecretError(f"{name} is not in the keyring as service {service!r}, account {account!r}")
    return output.decode(errors="replace").rstrip("\n")
