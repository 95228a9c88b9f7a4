"""Does the repairs of findings, each recorded in the audit before it is done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dragoman.cli.audit.tell import command_audit
from dragoman.cli.doctor.finding import Reported
from dragoman.masking import mask


def repair_all(found: Sequence[Reported]) -> list[Reported]:
    """The findings after the repairs: `fixed`, or with the reason why it was not possible."""
    if not any(one.finding.repair for one in found):
        return list(found)
    with command_audit() as acting:
        repaired = []
        for one in found:
            finding = one.finding
            if finding.repair is not None:
                facts = {"check": one.check, "about": finding.about, "what": finding.detail}
                try:
                    with acting("repaired", facts, ()):
                        done = finding.repair()
                    finding = replace(
                        finding, level="fixed", detail=done or finding.detail, fix="", repair=None
                    )
                except Exception as error:  # noqa: BLE001 (the other repairs are made all the same)
                    detail = mask(f"{finding.detail}; not repaired: {error}")
                    finding = replace(finding, detail=detail, repair=None)
            repaired.append(Reported(one.check, finding))
    return repaired
