"""Converts the "always" answers that the built-in agent stored itself, in `builtin/allowed` of the state folder.

A file there is named by a hash of the folder that its answers hold for, so that only folders of known sessions can be
found again. An answer becomes a memory of the project for the built-in agent alone, and never a wider one: those of a
folder inside a project, and lines that are not wholly understood, are asked again. Each file is claimed by renaming it,
so that two processes do not convert it twice; one that is not converted keeps the new name and is not used.
"""

from __future__ import annotations

import hashlib
import logging
import os
import secrets
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from dragoman.config.root import find_root
from dragoman.policy.memory.file import Remembered, is_private
from dragoman.policy.memory.memory import Memory
from dragoman.policy.memory.pattern import NotRemembered, Pattern, is_name, patterns_of
from dragoman.policy.requests.line import act_of_command

log = logging.getLogger(__name__)

UNUSED = ".unused"
"""Added to the name of a file that was looked at."""


def has_old_answers(folder: Path) -> bool:
    return folder.is_dir() and any(folder.glob("*.json"))


def convert_old_answers(folder: Path, cwds: Iterable[str], agents: Sequence[str], kept: Remembered) -> None:
    """Move what can be converted to `kept`, for the agents of these names, and log what cannot."""
    known = {hashlib.sha256(os.fsencode(cwd)).hexdigest()[:32]: cwd for cwd in cwds}
    unused: list[Path] = []
    for file in sorted(folder.glob("*.json")):
        claimed = file.with_name(file.name + UNUSED)
        try:
            file.rename(claimed)
            left = _convert(claimed, known.get(file.stem), agents, kept)
            if left:
                unused.append(claimed)
            else:
                claimed.unlink()
        except FileNotFoundError:
            continue  # another process has it
        except (OSError, ValueError, msgspec.MsgspecError, NotRemembered) as error:
            log.warning("%s: %s", claimed, error)
            unused.append(claimed)
    if unused:
        log.warning(
            "%d files of remembered answers of the built-in agent are not used any more, wholly or in part: what they "
            "allowed is asked again (`%s` in %s; you may delete them)",
            len(unused),
            f"*{UNUSED}",
            folder,
        )


def _convert(file: Path, cwd: str | None, agents: Sequence[str], kept: Remembered) -> int:
    """Returns how many answers of the file are left out."""
    with file.open("rb") as opened:
        if not is_private(opened.fileno()):
            raise ValueError("others may write to it, so it is not used")
        keys = msgspec.json.decode(opened.read(), type=list[str])
        when = datetime.fromtimestamp(os.fstat(opened.fileno()).st_mtime, UTC)
    if cwd is None or not agents or str(find_root(Path(cwd))) != cwd:
        return max(len(keys), 1)
    made = [patterns for key in keys if (patterns := patterns_of_key(key, cwd))]
    for patterns in made:
        kept.add(
            Memory(
                id=f"m_{secrets.token_hex(5)}",
                pattern=[msgspec.structs.replace(one, agent=list(agents)) for one in patterns],
                scope="project",
                root=cwd,
                session="",
                call="",
                who="local",
                when=when.isoformat(timespec="seconds"),
            )
        )
    return len(keys) - len(made)


def patterns_of_key(key: str, root: str) -> list[Pattern]:
    """What an old answer covers in a project; empty if that cannot be said as narrowly."""
    if key.startswith("run="):
        return patterns_of(act_of_command(key[4:], cwd=root, workspace=root)) or []
    effect, _, subject = key.partition(":")
    if not is_name(subject):
        return []
    if effect == "run":
        words: list[str | list[str]] = [*subject.split()]
        return [Pattern(command=[words])] if words else []
    if effect == "write":
        inside = Path(os.path.realpath(subject)).is_relative_to(root) and subject.startswith("/")
        return (
            [Pattern(paths=[f"{os.path.realpath(subject)}/**"], access="write", kind=["edit"])]
            if inside
            else []
        )
    if effect == "fetch":
        return [Pattern(hosts=[subject], kind=["fetch"])]
    server, _, tool = subject.partition(":")
    plain = effect == "mcp" and server and tool and not {":", "/"} & {*server, *tool}
    return [Pattern(mcp=[f"{server}/{tool}"])] if plain else []
