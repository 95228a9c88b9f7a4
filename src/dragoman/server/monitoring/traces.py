"""OpenTelemetry spans: turns, starts of agents, waits for people. Loaded only where somebody collects them.

A `traceparent` in a request's `_meta` is the parent; agents get ours in the `_meta` of their prompts, so that a trace
goes through from the editor to the tool call. No span holds anything that was said.
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
"""Seconds that the last spans have at shutdown; a collector that hangs does not keep us."""

_propagator = TraceContextTextMapPropagator()


class Traces:
    """Implements `Witness`."""

    def __init__(self, endpoint: str | None = None) -> None:
        """Without `endpoint`, and for everything else, OpenTelemetry's own `OTEL_*` variables hold."""
        # What the environment says of the service wins over these.
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
        """Its turn ends with an error, and that span says so."""

    def question(self, session_id: str, kind: str) -> _Spanned:
        turn = self._turns.get(session_id)
        parent = set_span_in_context(turn) if turn is not None else None
        known = {"dragoman.session": session_id}
        return _Spanned(self._tracer.start_span(f"{kind} wait", parent, attributes=known))

    def request(self, method: str, failed: bool) -> None:
        """Requests that take time show as what they make happen."""


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
    """Whoever named itself in `_meta`; a made-up or broken name is no parent."""
    carrier = {name: value for name, value in meta.items() if isinstance(value, str)}
    return _propagator.extract(carrier, Context())
