"""OpenTelemetry spans: turns, starts of agents, waits for the user. Loaded only if a collector is configured.

A `traceparent` in a request's `_meta` is the parent; agents get the gateway's in the `_meta` of their prompts, so that
a trace goes from the editor to the tool call. No span contains prompts or output.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_VERSION, OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from dragoman import __version__
from dragoman.gateway.ports.witness import TRACE

SERVICE = "dragoman"
FAREWELL = 2.0
"""Seconds to send the last spans at shutdown; a collector that hangs does not delay it longer."""

_propagator = TraceContextTextMapPropagator()


class Traces:
    """Implements `Witness`."""

    def __init__(self, endpoint: str | None = None) -> None:
        """`endpoint` overrides the environment; all other settings come from OpenTelemetry's `OTEL_*` variables."""
        # Resource attributes of the environment override these.
        resource = Resource({"service.name": SERVICE, SERVICE_VERSION: __version__}).merge(
            OTELResourceDetector().detect()
        )
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint)))
        self._tracer = self._provider.get_tracer(SERVICE, __version__)
        self._turns: dict[str, Span] = {}

    def close(self) -> None:
        farewell = threading.Thread(target=self._provider.shutdown, daemon=True)
        farewell.start()
        farewell.join(FAREWELL)

    # -- Witness

    def turn(self, session_id: str, agent: str, meta: Mapping[str, object]) -> _Spanned:
        known = {"dragoman.session": session_id, "dragoman.agent": agent}
        span = self._tracer.start_span("turn", _parent(meta), SpanKind.SERVER, known)
        self._turns[session_id] = span
        return _Spanned(span, lambda: self._turns.pop(session_id, None))

    def start(self, agent: str) -> _Spanned:
        known = {"dragoman.agent": agent}
        return _Spanned(self._tracer.start_span("agent start", _parent(TRACE.get()), SpanKind.CLIENT, known))

    def crash(self, agent: str) -> None:
        """Ignored: the span of the agent's turn ends with an error."""

    def question(self, session_id: str, kind: str) -> _Spanned:
        turn = self._turns.get(session_id)
        parent = set_span_in_context(turn) if turn is not None else None
        known = {"dragoman.session": session_id}
        return _Spanned(self._tracer.start_span(f"{kind} wait", parent, attributes=known))

    def request(self, method: str, failed: bool) -> None:
        """Ignored: slow requests show as the turns and starts that they cause."""


class _Spanned:
    """Implements `Observed`."""

    def __init__(self, span: Span, ended: Callable[[], object] = lambda: None) -> None:
        self._span = span
        self._ended = ended

    @property
    def carried(self) -> Mapping[str, str]:
        carrier: dict[str, str] = {}
        _propagator.inject(carrier, set_span_in_context(self._span))
        return carrier

    def first(self) -> None:
        self._span.add_event("first update")

    def end(self, outcome: str, error: str = "") -> None:
        self._span.set_attribute("dragoman.outcome", outcome)
        if outcome == "error":
            self._span.set_status(Status(StatusCode.ERROR))
        self._span.end()
        self._ended()


def _parent(meta: Mapping[str, object]) -> Context:
    """The parent context named in `_meta`; an invalid `traceparent` gives none."""
    carrier = {name: value for name, value in meta.items() if isinstance(value, str)}
    return _propagator.extract(carrier, Context())
