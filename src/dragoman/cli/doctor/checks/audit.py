"""Looks at the audit for `dragoman doctor`: its chains, the rights of its key, its anchors, its disk."""

from __future__ import annotations

import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

from dragoman.audit import folder as places
from dragoman.audit import record
from dragoman.audit.anchors import read_anchor
from dragoman.audit.keys import PUBLIC, SECRET, KeyProblem, load_key
from dragoman.audit.report import Report
from dragoman.audit.verify import verify
from dragoman.cli.doctor.finding import Context, Finding, sized
from dragoman.config.audit_model import AuditConfig
from dragoman.masking import mask_setting
from dragoman.wire.timestamps import milliseconds

LITTLE_SPACE = 200 * 1024 * 1024
MOST_PROBLEMS = 10
QUICK = 256 * 1024 * 1024
"""Bytes of records that are checked; of a larger audit only the newest chains."""
BEHIND = 300_000
"""Milliseconds by which an anchor may be behind: a head is signed every minute."""
FILE = "file:"


def check(context: Context) -> Iterator[Finding]:
    config = context.loaded.config.audit
    found = examine(context.paths.audit_dir, config)
    yield from found
    if not found:
        yield Finding(
            "ok",
            "audit",
            "nothing is recorded yet" if config.enabled else "turned off (audit.enabled = false)",
        )


def examine(folder: Path, config: AuditConfig) -> list[Finding]:
    """What is wrong with an audit, or that nothing is; empty if there is none."""
    if not folder.is_dir():
        return []
    files = [Path(place.removeprefix(FILE)) for place in config.anchors if place.startswith(FILE)]
    heads = [line for file in files if file.is_file() for line in _lines(file)]
    chosen = _newest(folder)
    report = verify(folder, heads if chosen is None else (), chosen=chosen)
    return [
        *_chains(report, partly=chosen is not None),
        *_key(folder),
        *_rights(folder),
        *_anchors(config, files, report),
        *_space(folder),
    ]


def _newest(folder: Path) -> frozenset[str] | None:
    """The chains that were written last, up to `QUICK` bytes; None if that is all of them."""
    chains = sorted(places.chains(folder), key=lambda chain: chain.stat().st_mtime, reverse=True)
    sizes = [sum(file.stat().st_size for file in places.segments(chain)) for chain in chains]
    if sum(sizes) <= QUICK:
        return None
    read, count = 0, 0
    for size in sizes:
        read += size
        if read > QUICK:
            break
        count += 1
    return frozenset(chain.name for chain in chains[: max(1, count)])


def _chains(report: Report, *, partly: bool) -> Iterator[Finding]:
    what = f"{report.records:,} records in {len(report.chains):,} chains"
    for problem in report.problems[:MOST_PROBLEMS]:
        about = f"audit {problem.chain}:{problem.record}"
        yield Finding("error", about, problem.text, "`dragoman audit verify` shows all that was changed")
    if len(report.problems) > MOST_PROBLEMS:
        yield Finding(
            "error",
            "audit",
            f"{len(report.problems):,} records were changed, removed or cut off",
            "`dragoman audit verify` shows them all",
        )
    elif not report.problems and partly:
        told = f"{what}, those written last: consistent here; `dragoman audit verify` checks all"
        yield Finding("ok", "audit", told)
    elif not report.problems:
        up_to = report.anchored_up_to
        proved = f", anchored elsewhere up to {up_to}" if up_to is not None else ", not anchored elsewhere"
        yield Finding("ok", "audit", f"{what}: consistent here{proved}")


def _key(folder: Path) -> Iterator[Finding]:
    if not ((folder / SECRET).exists() or (folder / PUBLIC).exists()):
        return  # nothing was signed yet
    try:
        load_key(folder)
    except (KeyProblem, OSError) as error:
        fix = f"make it yours alone: `chmod 600 {folder / SECRET}`; if it is lost or damaged, restore it from a back-up"
        yield Finding("error", "audit key", str(error), fix)


def _rights(folder: Path) -> Iterator[Finding]:
    """The folder is private, which protects everything in it."""
    if stat.S_IMODE(folder.stat().st_mode) & 0o077:
        yield Finding(
            "warning",
            "audit",
            f"{folder} may be read by others",
            f"`chmod 700 {folder}`",
            partial(_close, folder),
        )


def _close(folder: Path) -> str:
    folder.chmod(0o700)
    return f"only you may enter {folder} now"


def _anchors(config: AuditConfig, files: list[Path], report: Report) -> Iterator[Finding]:
    signed = max((chain.signed_at for chain in report.chains), default="")
    for file in files:
        last = _last_head(file)
        if last is None and signed:
            yield Finding(
                "error",
                "audit anchor",
                f"{file} has no heads",
                "is its disk mounted, and may you write to it?",
            )
        elif last is not None and signed and milliseconds(signed) - milliseconds(last) > BEHIND:
            yield Finding(
                "warning",
                "audit anchor",
                f"{file} ends at {last}, the audit at {signed}",
                "see what the log of the gateway says of this anchor",
            )
    for place in config.anchors:
        if not place.startswith(FILE):
            told = f"{mask_setting(place)} is not asked here: `/metrics` and the log of a gateway say how far it is"
            yield Finding("ok", "audit anchor", told)


def _last_head(file: Path) -> str | None:
    last = None
    for line in _lines(file):
        with suppress(record.Broken):
            facts = record.read_record(line)
            last = facts["at"] if facts["kind"] == "head" else last
    return last


def _lines(file: Path) -> list[bytes]:
    try:
        return list(read_anchor(file))
    except OSError:
        return []


def _space(folder: Path) -> Iterator[Finding]:
    free = shutil.disk_usage(folder).free
    if free < LITTLE_SPACE:
        told = f"only {sized(free)} are free at {folder}: acts that cannot be recorded are denied"
        yield Finding("warning", "audit", told, "free some space, or set audit.retain_days")
