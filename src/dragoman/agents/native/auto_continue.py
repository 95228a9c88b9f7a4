"""Continues automatically when an agent stops at its turn limit with open tasks (D-113); off unless configured."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence

log = logging.getLogger(__name__)

PATIENCE = 10.0
"""Seconds that the command may take to report open tasks."""
NOTHING = frozenset({b"", b"[]", b"{}", b"null", b"0", b"false"})
"""Outputs of the command that mean no open tasks."""
LAST_WORDS = 1000
WORD = "continue"


async def open_tasks(command: Sequence[str], cwd: str, environ: Mapping[str, str]) -> bool:
    """Whether the user's command reports open tasks: it succeeds and prints something, such as a list in JSON."""
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=cwd,
            env=dict(environ),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
    except OSError as error:
        log.warning("continue_command cannot be started: %s", error)
        return False
    try:
        async with asyncio.timeout(PATIENCE):
            printed, errors = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        log.warning("continue_command took longer than %g s", PATIENCE)
        return False
    if process.returncode:
        said = errors[-LAST_WORDS:].decode(errors="replace").strip()
        log.info("continue_command reports no tasks: it exited with code %s. %s", process.returncode, said)
        return False
    return printed.strip() not in NOTHING
