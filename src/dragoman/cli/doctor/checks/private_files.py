"""Checks that other users cannot read secrets, sessions and logs."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from dragoman.audit.keys import SECRET
from dragoman.cli.audit.opening import is_public
from dragoman.cli.doctor.finding import Context, Finding, counted

OTHERS = stat.S_IRGRP | stat.S_IROTH
PASS = stat.S_IXGRP | stat.S_IXOTH
MOST_NAMED = 4


def check(context: Context) -> Iterator[Finding]:
    paths = context.paths
    secret = {
        paths.token_file: "the token of `dragoman serve`",
        paths.tokens_file: "the hashes of tokens",
        paths.logins_file: "the logins of browsers",
        paths.audit_dir / SECRET: "the key that signs the audit",
        **{file: f"a secret of the agent {agent}" for agent, file in _secret_files(context)},
    }
    if (key := context.loaded.config.serve.tls_key) is not None:
        secret[Path(key).expanduser()] = "the key of `dragoman serve` for TLS"
    if _has_secrets(context):
        secret[paths.config_file] = "keys of agents"
    troubles = [found for file, what in secret.items() if (found := _readable(file, what)) is not None]
    yield from troubles
    if (folder := _open_state(paths.state_dir)) is not None:
        yield folder
    elif not troubles:
        present = sum(file.exists() for file in secret)
        yield Finding(
            "ok", "files", f"no other user can read {counted(present, 'file')} with secrets, or the sessions"
        )


def _secret_files(context: Context) -> Iterator[tuple[str, Path]]:
    for name, agent in context.loaded.config.agents.items():
        for place in agent.secrets.values():
            if place.startswith("file:"):
                yield name, Path(place.removeprefix("file:")).expanduser()


def _has_secrets(context: Context) -> bool:
    """Whether the user's own file has values that are hidden elsewhere."""
    loaded, file = context.loaded, str(context.paths.config_file)
    found: list[tuple[str, ...]] = []
    if loaded.config.serve.auth_token is not None:
        found.append(("serve", "auth_token"))
    for name, agent in loaded.config.agents.items():
        found += [("agents", name, "env", variable) for variable in agent.env if not is_public(variable)]
        found += [("agents", name, "headers", header) for header in agent.headers]
    return any(loaded.origin(*path) == file for path in found)


def _readable(file: Path, what: str) -> Finding | None:
    try:
        mode, folder = file.stat().st_mode, file.parent.stat().st_mode
    except OSError:
        return None
    if not mode & OTHERS or not stat.S_ISREG(mode):
        return None
    shut = not folder & PASS
    why = "; only its folder keeps them out" if shut else ""
    return Finding(
        "warning" if shut else "error",
        str(file),
        f"other users may read it (mode {stat.S_IMODE(mode):04o}), and it has {what}{why}",
        f"`chmod 600 {file}`" + ("" if shut else "; replace the secret if others use this machine"),
        partial(_close, file, 0o600),
    )


def _open_state(folder: Path) -> Finding | None:
    """The state folder, if others may enter it and read something in it."""
    try:
        if not folder.stat().st_mode & PASS:
            return None
        open_ones = sorted(
            entry.name for entry in folder.iterdir() if entry.name != "config.toml" and _is_open(entry)
        )
    except OSError:
        return None
    if not open_ones:
        return None
    named = ", ".join(open_ones[:MOST_NAMED]) + (", …" if len(open_ones) > MOST_NAMED else "")
    return Finding(
        "warning",
        str(folder),
        f"other users may read what is in it: {named}",
        f"`chmod 700 {folder}`",
        partial(_close, folder, 0o700),
    )


def _is_open(entry: Path) -> bool:
    try:
        mode = entry.lstat().st_mode
    except OSError:
        return False
    return bool(mode & OTHERS) and not stat.S_ISLNK(mode)


def _close(file: Path, mode: int) -> str:
    file.chmod(mode)
    return f"only you may read it now (mode {mode:04o})"
