"""Checks that no other user controls one of Dragoman's folders.

Another user who can write to the configuration folder chooses the commands that agents run; one who can write to the
token folder gets access. So a folder that another user owns or may write to is rejected. Parent folders are not
checked: a folder that another user swaps in there belongs to that user, and is rejected.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from dragoman.config.errors import ConfigError

ROOT = 0


def check_own(folder: Path) -> None:
    """Raise `ConfigError` unless this user or root owns the folder and no other user may write to it.

    A folder that does not exist yet is accepted.
    """
    try:
        link = folder.lstat()
        status = folder.stat() if stat.S_ISLNK(link.st_mode) else link
    except OSError:
        return  # the code that uses the folder reports the error
    if not stat.S_ISDIR(status.st_mode):
        return
    if status is not link and not _trusted(link.st_uid):
        raise ConfigError(
            f"{folder} is a link of another user (uid {link.st_uid}), who can lead it anywhere: {_ELSEWHERE}"
        )
    if not _trusted(status.st_uid):
        raise ConfigError(
            f"{folder} belongs to another user (uid {status.st_uid}), who could change the settings and tokens in "
            f"it: {_ELSEWHERE}, or make it yours with `chown` once you know what is in it"
        )
    others = stat.S_IWOTH | (0 if _is_private(status.st_gid) else stat.S_IWGRP)
    if status.st_mode & others:
        raise ConfigError(
            f"{folder} can be written to by other users (mode {stat.S_IMODE(status.st_mode):04o}), who could change the "
            f"settings and tokens in it: look at what is in it, then run `chmod go-w {folder}`, or {_ELSEWHERE}"
        )


def others_may_write(file: Path) -> str | None:
    """Why rules in a file must not allow anything: others than this user and root may write to it."""
    try:
        status = file.stat()
    except (OSError, ValueError):
        return None
    others = stat.S_IWOTH | (0 if _is_private(status.st_gid) else stat.S_IWGRP)
    if not stat.S_ISREG(status.st_mode) or not (status.st_mode & others or not _trusted(status.st_uid)):
        return None
    return (
        f"{file}: its rules that allow are ignored, as other users may write to it "
        f"(uid {status.st_uid}, mode {stat.S_IMODE(status.st_mode):04o}): "
        f"look at what is in it, then run `chmod go-w {file}`, and `chown` if it is not yours"
    )


_ELSEWHERE = "set DRAGOMAN_HOME to a folder of your own"


def _trusted(uid: int) -> bool:
    return uid in (os.geteuid(), ROOT)


def _is_private(gid: int) -> bool:
    """Whether the group has the user's name and no other member; many systems have such a group for each user."""
    import grp
    import pwd

    try:
        user = pwd.getpwuid(os.geteuid()).pw_name
        group = grp.getgrgid(gid)
    except KeyError:
        return False
    return group.gr_name == user and set(group.gr_mem) <= {user}
