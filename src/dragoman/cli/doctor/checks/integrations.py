"""Checks what other programs were told about Dragoman: editors, and the unit of the service."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

from dragoman.cli.doctor.finding import Context, Finding


def check_editors(context: Context) -> Iterator[Finding]:
    from dragoman.edited_file import EditError
    from dragoman.editors.catalog import EDITORS
    from dragoman.editors.editor import Machine

    machine = Machine.this(context.environ)
    configured = 0
    for name, editor in EDITORS.items():
        file = editor.file(machine)
        if editor.by_hand or file is None:
            continue
        about = f"editor {name}"
        try:
            entries = editor.find(file)
        except EditError as error:
            yield Finding("warning", about, str(error), f"mend {file}; then `dragoman editor show {name}`")
            continue
        for entry in entries:
            configured += 1
            if _starts(entry.program):
                yield Finding("ok", about, f"{entry.name} starts {entry.program} ({file})")
                continue
            fix = f"`dragoman editor install {name}` writes the present path, and shows what it changes"
            yield Finding(
                "error", about, f"{entry.name} in {file} starts {entry.program}, which is gone", fix
            )
    if not configured:
        yield Finding(
            "ok", "editors", "none is configured here (`dragoman editor list` shows those it knows)"
        )


def _starts(program: str) -> bool:
    if os.sep not in program:
        return shutil.which(program) is not None
    return os.access(program, os.X_OK)


def check_service(context: Context) -> Iterator[Finding]:
    from dragoman.editors.editor import Machine
    from dragoman.system_service import launchd, systemd

    machine, path = Machine.this(context.environ), context.environ.get("PATH")
    on_mac = context.platform == "darwin"
    manager = launchd.find(machine.home, path) if on_mac else systemd.find(machine.config, path)
    try:
        content = manager.file.read_bytes()
    except FileNotFoundError:
        yield Finding("ok", "service", "not installed")
        return
    named = manager.program_in(content)
    if named is None or not os.access(named, os.X_OK):
        what = f"{manager.file} starts {named or 'no program'}, which is gone"
        yield Finding("error", "service", what, "`dragoman service install` writes the present path")
    elif problem := manager.unavailable():
        yield Finding(
            "warning", "service", problem, "log in with a session of systemd, or run `dragoman serve`"
        )
    elif not (status := manager.status()).runs:
        yield Finding(
            "warning", "service", f"installed, and {status.active}", "`dragoman service status` says more"
        )
    else:
        yield Finding("ok", "service", f"{status.active}, {status.enabled} ({manager.file})")
