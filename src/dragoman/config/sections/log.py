"""`[log]` and `[traces]`: what the gateway tells of itself."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct


class LogConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Log lines; never on stdout."""

    level: Annotated[
        Literal["debug", "info", "warning", "error"],
        Meta(description="The least important line that is written."),
    ] = "info"
    format: Annotated[
        Literal["text", "json"],
        Meta(description="`text` is for people on a terminal, `key=value` elsewhere."),
    ] = "text"
    file: Annotated[str | None, Meta(description="File to log to, instead of stderr.")] = None
    prompts: Annotated[bool, Meta(description="Also log the text of prompts.")] = False


class TracesConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """OpenTelemetry spans of turns, agent starts and waits; needs `dragoman[traces]`."""

    endpoint: Annotated[
        str | None,
        Meta(
            description="Where spans go, as OTLP over HTTP, such as `http://127.0.0.1:4318/v1/traces`. "
            "OpenTelemetry's own `OTEL_*` variables do it too; with neither there are no spans."
        ),
    ] = None
