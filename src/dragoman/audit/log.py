"""The audit of this process: writes records, signs them, tells the anchors, removes what is old.

`record` is called before what it tells takes effect. It costs some microseconds and does not wait; signing, anchors and
pruning are done by a thread.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any

from dragoman import masking
from dragoman.audit.chain import Chain, end_dead_chains
from dragoman.audit.configuration import MOST_FILES, record_changes
from dragoman.audit.errors import AuditError
from dragoman.audit.hiding import Hiding
from dragoman.audit.keys import KeyProblem
from dragoman.audit.prune import prune
from dragoman.audit.record import Broken
from dragoman.config.audit_model import AuditConfig

if TYPE_CHECKING:
    from dragoman.audit.anchors import Anchor

log = logging.getLogger(__name__)

SIGN_EVERY = 60.0
PRUNE_EVERY = 3600.0
DAY = 86_400_000


class AuditLog:
    def __init__(self, folder: Path, config: AuditConfig, hidden: Iterable[str] = ()) -> None:
        """Any thread may use it."""
        self.folder = folder
        self._guard = threading.RLock()
        self._watched: dict[Path, None] = {}
        self._config = config
        self.blocks = config.on_failure == "block"
        """Whether what cannot be recorded must not be done."""
        self._anchors: list[Anchor] = []
        if config.anchors:
            from dragoman.audit.anchors import Anchor  # it brings the network in

            self._anchors = [Anchor(place) for place in config.anchors]
        self._chain = Chain(folder, self._tell, every=config.anchor_records, retain_days=config.retain_days)
        self._hiding = Hiding(hidden)
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.failure: str | None = None
        """Why the last record could not be written; None if it could."""
        self.missing = 0
        """Records that could not be written since the last one that was."""
        self.written: Counter[str] = Counter()
        """Records by kind."""
        self.decided: Counter[str] = Counter()
        """Decisions by what was decided."""
        self.failed = 0
        """Records that could not be written."""

    def hide(self, values: Iterable[str]) -> None:
        """Replace these values in all records from now on."""
        self._hiding.add(values)

    def record(
        self, kind: str, facts: dict[str, Any], secrets: Iterable[str] = (), *, kept: bool = False
    ) -> None:
        """Write one record. Raises `AuditError` if it cannot be written. `secrets` are replaced in this one.

        `kept`: the caller tries again, and calls `lose` if it gives up.
        """
        with self._guard:
            if self._thread is None:
                self._start()
            try:
                if self.missing:
                    self._chain.append("gap", {"missing": self.missing})
                    self.missing = 0
                if kind == "act_failed":  # programs such as git repeat addresses with passwords
                    why, _ = masking.mask_assigned(str(facts.get("why")))
                    facts = {**facts, "why": masking.mask_text(why)}
                self._chain.append(kind, self._without_secrets(facts, secrets))
            except AuditError as error:
                if not kept:
                    self.lose()
                if self.failure is None:
                    log.error("the audit cannot be written", extra={"error": str(error)})
                self.failure = str(error)
                raise
            self.written[kind] += 1
            if kind == "decision":
                self.decided[str(facts.get("decision"))] += 1
            if self.failure is not None:
                log.warning("the audit can be written again")
                self.failure = None

    def _without_secrets(self, facts: dict[str, Any], secrets: Iterable[str]) -> dict[str, Any]:
        try:
            return self._hiding.apply(facts, secrets)
        except RecursionError as error:
            raise AuditError("A record is nested too deeply to be written.") from error

    def lose(self) -> None:
        """Count a record that will not be written."""
        with self._guard:
            self.missing += 1
            self.failed += 1

    def watch(self, files: Iterable[Path]) -> None:
        """Record changes of these configuration files, those since the last look of any process too."""
        with self._guard:
            self._watched.update(dict.fromkeys(files))
            for file in list(self._watched)[:-MOST_FILES]:
                del self._watched[file]

    def sign(self) -> None:
        """Sign now what is not signed yet; a failure is logged."""
        try:
            self._chain.sign()
        except Exception as error:
            log.error("the audit cannot be signed", extra={"error": str(error)}, exc_info=_unexpected(error))

    @property
    def anchors(self) -> list[Anchor]:
        return self._anchors

    def close(self) -> None:
        """Sign, end the chain, and wait a moment for the anchors."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        try:
            self._chain.close()
        except Exception as error:
            log.error("the audit cannot be signed", extra={"error": str(error)}, exc_info=_unexpected(error))
        for anchor in self._anchors:
            if not anchor.close():
                told = {"anchor": anchor.place, "waiting": anchor.waiting, "error": anchor.problem}
                log.error("heads of the audit did not reach an anchor", extra=told)

    def _tell(self, line: bytes) -> None:
        for anchor in self._anchors:
            anchor.add(line)

    def _look_at_files(self) -> None:
        with self._guard:
            files = list(self._watched)
        record_changes(self.folder, files, self.record)

    def _start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="audit", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        """Sign every minute; first of all fix the ends of chains whose processes were killed."""
        pruned = 0.0
        _try("the ends of old chains of the audit are not fixed", lambda: end_dead_chains(self.folder))
        _try("changes of the configuration are not recorded", self._look_at_files)
        while not self._stop.wait(SIGN_EVERY):
            _try("changes of the configuration are not recorded", self._look_at_files)
            self.sign()
            _try("places in the audit are not stored", self._chain.store_places)
            if self._config.retain_days and time() - pruned > PRUNE_EVERY:
                pruned = time()
                _try("old records of the audit are not removed", self._prune)

    def _prune(self) -> None:
        prune(self.folder, int(time() * 1000) - self._config.retain_days * DAY)


def _try(otherwise: str, step: Callable[[], object]) -> None:
    """Take a step of the thread; whatever goes wrong is logged, and the thread goes on."""
    try:
        step()
    except Exception as error:
        log.warning(otherwise, extra={"error": str(error)}, exc_info=_unexpected(error))


def _unexpected(error: Exception) -> bool:
    return not isinstance(error, (OSError, AuditError, Broken, KeyProblem))
