"""Records what a command changed, in a chain of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman.cli.audit.opening import secrets_of
from dragoman.cli.entry import complain
from dragoman.cli.settings import load_settings
from dragoman.config.audit_model import AuditConfig
from dragoman.config.errors import ConfigError
from dragoman.config.paths import find_paths
from dragoman.gateway.ports.acts import Acting, NotRecorded, failed, unrecorded

if TYPE_CHECKING:
    from dragoman.audit.log import AuditLog

BY = "local"


def tell(kind: str, **facts: Any) -> None:
    """Record it, if an audit is kept; a failure is told and does not stop the command."""
    from dragoman.audit.errors import AuditError

    with _audit() as log:
        if log is not None:
            try:
                log.record(kind, {"by": BY, **facts})
            except AuditError as error:
                _complain(error)


@contextmanager
def telling(kind: str, **facts: Any) -> Iterator[None]:
    """Record what the block does before it is done, and if it fails; a failure to record does not stop it."""
    tell(kind, **facts)
    try:
        yield
    except BaseException as error:
        tell("act_failed", **failed(kind, facts, error))
        raise


@contextmanager
def command_audit() -> Iterator[Acting]:
    """Records acts of a command before they are done; one that cannot be recorded is refused, or told (`on_failure`)."""
    from dragoman.audit.errors import AuditError

    with _audit() as log:
        if log is None:
            yield unrecorded
            return

        @contextmanager
        def act(kind: str, facts: dict[str, Any], secrets: Iterable[str] = ()) -> Iterator[None]:
            try:
                log.record(kind, {"by": BY, **facts}, secrets)
            except AuditError as error:
                if log.blocks:
                    raise NotRecorded(f"Not done, since it could not be recorded. {error}") from error
                _complain(error)
            try:
                yield
            except BaseException as error:
                with suppress(AuditError):
                    log.record("act_failed", failed(kind, {"by": BY, **facts}, error), secrets)
                raise

        yield act


@contextmanager
def changing(*files: Path) -> Iterator[None]:
    """Record that a command changes configuration files, with their hashes before and after."""
    from dragoman.audit.configuration import record_changes
    from dragoman.audit.errors import AuditError

    with _audit() as log:
        if log is None:
            yield
            return
        try:
            record_changes(log.folder, files, log.record)  # what others changed before
        except (AuditError, OSError) as error:
            _complain(error)
        yield
        try:
            record_changes(log.folder, files, log.record, BY, unknown=True)
        except (AuditError, OSError) as error:
            _complain(error)


@contextmanager
def _audit() -> Iterator[AuditLog | None]:
    """The audit, if one is kept; also while the configuration is broken, which a command may be about to mend."""
    try:
        paths, loaded = load_settings(quiet=True)
        settings, hidden = loaded.config.audit, list(secrets_of(loaded.config))
    except ConfigError:
        paths, settings, hidden = find_paths(), AuditConfig(), []
        paths.check()  # nothing is written to a folder of others
    if not settings.enabled:
        yield None
        return
    from dragoman.audit.log import AuditLog

    log = AuditLog(paths.audit_dir, settings, hidden)
    try:
        yield log
    finally:
        log.close()


def _complain(error: Exception) -> None:
    complain(f"warning: this is not in the audit: {error}")
