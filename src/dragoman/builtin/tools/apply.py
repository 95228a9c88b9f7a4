"""Take what was changed in the box of sandbox mode over into the workspace."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import msgspec

from dragoman.builtin.box_copy import Change
from dragoman.builtin.errors import ToolError
from dragoman.builtin.tools.context import ToolContext
from dragoman.builtin.tools.tool import Intent, Json, Result, Tool, diff_content, text_content
from dragoman.services.roots import Roots
from dragoman.wire.errors import RpcError

MAX_SHOWN = 1024 * 1024
"""Bytes of a file that is shown as a diff."""
MAX_DIFFS = 100


class Arguments(msgspec.Struct, forbid_unknown_fields=True):
    pass


async def prepare(context: ToolContext, arguments: Arguments) -> Intent:
    changes = await context.box.changes()
    if not changes:
        raise ToolError("Nothing was changed in the box.")
    both = [each.path for each in changes if each.conflict]
    if both:
        raise ToolError(
            f"Changed in the workspace too since the box was made: {', '.join(both[:10])}. "
            "Nothing was applied; make those changes by hand."
        )
    diffs = await asyncio.to_thread(_diffs, changes)

    async def act() -> Result:
        await asyncio.to_thread(_take_over, changes, context.roots)
        await context.box.remove()
        return Result(f"{_count(changes)} applied to the workspace.", diffs)

    title = f"Apply {_count(changes)} of the box to the workspace"
    return Intent(title, act, [{"path": each.path} for each in changes], diffs)


def _count(changes: Sequence[Change]) -> str:
    return f"{len(changes)} change{'s' * (len(changes) > 1)}"


def _diffs(changes: Sequence[Change]) -> list[Json]:
    shown: list[Json] = []
    for change in changes[:MAX_DIFFS]:
        old, new = _text(Path(change.path)), _text(change.copied)
        if old is None or new is None:
            shown.append(text_content(f"{'Remove' if change.removed else 'Replace'} {change.path}"))
        else:
            there = os.path.lexists(change.path)
            shown.append(diff_content(change.path, old if there else None, new))
    if len(changes) > MAX_DIFFS:
        shown.append(text_content(f"and {len(changes) - MAX_DIFFS} more files"))
    return shown


def _text(path: Path) -> str | None:
    """Empty for what is not there, None for what is no short text."""
    if not os.path.lexists(path):
        return ""
    if path.is_symlink() or not path.is_file() or path.stat().st_size > MAX_SHOWN:
        return None
    try:
        return path.read_text()
    except UnicodeDecodeError:
        return None


def _take_over(changes: Sequence[Change], roots: Sequence[str]) -> None:
    allowed = Roots(roots)
    for change in changes:
        try:
            allowed.resolve(str(Path(change.path).parent))
        except RpcError as error:
            raise ToolError(error.message) from error
    for change in changes:
        target = Path(change.path)
        if change.removed:
            target.unlink(missing_ok=True)
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.is_symlink() or change.copied.is_symlink():
            target.unlink(missing_ok=True)
        shutil.copy2(change.copied, target, follow_symlinks=False)


apply = Tool(
    "apply",
    "edit",
    "export",
    "Take the files that were changed in the box over into the user's workspace, after the user has seen them.",
    Arguments,
    prepare,
)
