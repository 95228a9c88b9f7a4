"""Copy the changes in the box of sandbox mode to the workspace."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import weakref
from collections.abc import Sequence
from pathlib import Path

import msgspec

from dragoman.builtin.errors import ToolError
from dragoman.builtin.sandbox.box_copy import Change
from dragoman.builtin.tools.context import ToolContext
from dragoman.builtin.tools.tool import Intent, Json, Result, Tool, diff_content, text_content
from dragoman.services.roots import Roots
from dragoman.wire.errors import RpcError

MAX_SHOWN = 1024 * 1024
"""Bytes of a file that is shown as a diff."""
MAX_DIFFS = 100

Staged = tuple[Change, Path]
"""A change, and the copy of its file that the user is asked about."""


class Arguments(msgspec.Struct, forbid_unknown_fields=True):
    pass


async def prepare(context: ToolContext, arguments: Arguments) -> Intent:
    changes = await context.box.changes()
    if not changes:
        raise ToolError("Nothing was changed in the box.")
    both = [change.path for change in changes if change.conflict]
    if both:
        raise ToolError(
            f"Changed in the workspace too since the box was made: {', '.join(both[:10])}. "
            "Nothing was applied; make those changes by hand."
        )
    # Beside the copy, where nothing in the box can reach it.
    folder = Path(tempfile.mkdtemp(prefix="apply-", dir=changes[0].top.parent))
    staged = await asyncio.to_thread(_stage, changes, folder)
    diffs = await asyncio.to_thread(_diffs, staged)

    async def act() -> Result:
        try:
            if await context.box.changes() != changes:
                raise ToolError(
                    "Files changed in the box or in the workspace while the question was open. "
                    "Nothing was applied; apply again to see them."
                )
            await asyncio.to_thread(_take_over, staged, context.roots)
        finally:
            remove()
        await context.box.remove()
        return Result(f"{_count(changes)} applied to the workspace.", diffs)

    remove = weakref.finalize(act, shutil.rmtree, folder, ignore_errors=True)  # also if the user rejects it
    title = f"Apply {_count(changes)} of the box to the workspace"
    return Intent(title, act, [{"path": change.path} for change in changes], diffs)


def _count(changes: Sequence[Change]) -> str:
    return f"{len(changes)} change{'s' * (len(changes) > 1)}"


def _stage(changes: Sequence[Change], folder: Path) -> list[Staged]:
    """Copy the changed files to where no command in the box can change them: what the user saw is what is applied."""
    staged = [(change, folder / str(number)) for number, change in enumerate(changes)]
    try:
        for change, copied in staged:
            if not change.removed:
                change.copy_to(copied)
    except (RpcError, OSError) as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise ToolError(error.message if isinstance(error, RpcError) else str(error)) from error
    return staged


def _diffs(staged: Sequence[Staged]) -> list[Json]:
    shown: list[Json] = []
    for change, copied in staged[:MAX_DIFFS]:
        old, new = _text(Path(change.path)), _text(copied)
        if old is None or new is None:
            shown.append(text_content(_summary(change)))
        else:
            there = os.path.lexists(change.path)
            shown.append(diff_content(change.path, old if there else None, new))
    rest = [_summary(change) for change, _ in staged[MAX_DIFFS:]]
    if rest:
        shown.append(text_content("\n".join([f"And {len(rest)} more:", *rest])))
    return shown


def _summary(change: Change) -> str:
    if change.leads_to:
        return f"Link {change.path} to {change.leads_to}"
    return f"{'Remove' if change.removed else 'Write'} {change.path}"


def _text(path: Path) -> str | None:
    """The text of a file; empty if it is missing, None if it is not text or too large."""
    if not os.path.lexists(path):
        return ""
    if path.is_symlink() or not path.is_file() or path.stat().st_size > MAX_SHOWN:
        return None
    try:
        return path.read_text()
    except UnicodeDecodeError:
        return None


def _take_over(staged: Sequence[Staged], roots: Sequence[str]) -> None:
    allowed = Roots(roots)
    for change, _ in staged:
        try:
            allowed.resolve(str(Path(change.path).parent))
        except RpcError as error:
            raise ToolError(error.message) from error
    for change, copied in sorted(staged, key=lambda each: not each[0].removed):
        target = Path(change.path)
        if change.removed:
            target.unlink(missing_ok=True)
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.is_symlink() or copied.is_symlink():
            target.unlink(missing_ok=True)
        elif target.is_dir():  # a file replaces a folder, whose files were removed before
            _remove_empty(target)
        shutil.copy(copied, target, follow_symlinks=False)


def _remove_empty(top: Path) -> None:
    for folder, _, _ in os.walk(top, topdown=False):
        Path(folder).rmdir()


apply = Tool(
    "apply",
    "edit",
    "export",
    "Take the files that were changed in the box over into the user's workspace, after the user has seen them.",
    Arguments,
    prepare,
)
