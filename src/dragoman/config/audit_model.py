"""The part of the configuration that is about the audit."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct


class AuditConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One record of who allowed what and what ran, which outlives sessions; `dragoman audit` reads it."""

    enabled: Annotated[bool, Meta(description="Keep it.")] = True
    content: Annotated[
        bool, Meta(description="Also record the text of prompts and what tools were given and returned.")
    ] = False
    on_failure: Annotated[
        Literal["block", "warn"],
        Meta(description="While it cannot be written: acts are denied after a while, or go on unrecorded."),
    ] = "block"
    retain_days: Annotated[
        int, Meta(ge=0, description="Remove records that are older, segment by segment; 0 keeps all.")
    ] = 0
    anchors: Annotated[
        list[str],
        Meta(
            description="Where signed heads also go: `file:/PATH`, `https://URL`, `syslog:`, `otlp+https://URL`."
        ),
    ] = []
    anchor_records: Annotated[bool, Meta(description="Send all records there, not only the heads.")] = False
