"""The Prometheus metrics at `/metrics`.

Counters change when something begins or ends (`Witness`); gauges are read when the metrics are requested. Nothing is
counted per message.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from dragoman import __version__
from dragoman.gateway.delivery.journal_state import JournalState
from dragoman.gateway.gateway import Gateway
from dragoman.gateway.ports.audit import AuditFigures
from dragoman.gateway.ports.usage import UNIT, UsageFigures
from dragoman.gateway.requests import REQUESTS
from dragoman.server.asgi import Response
from dragoman.server.monitoring import exposition
from dragoman.server.monitoring.exposition import Histogram, Sample
from dragoman.server.monitoring.traffic import Traffic, process_samples

SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0)
"""Histogram bounds for all durations: from a local response to a turn of half an hour."""

KNOWN_METHODS = frozenset(REQUESTS) | {"initialize"}
"""Methods that become labels; a client may send any method, and the number of labels must stay bounded."""


@dataclass(frozen=True, slots=True)
class Metric:
    name: str
    kind: str
    labels: tuple[str, ...]
    meaning: str


METRICS = (
    Metric("dragoman_build_info", "gauge", ("version",), "Always 1; its label is the version."),
    Metric("dragoman_sessions", "gauge", ("state",), "Sessions in memory by state."),
    Metric("dragoman_clients", "gauge", (), "Connected clients, over every transport."),
    Metric(
        "dragoman_attachments",
        "gauge",
        ("pace",),
        "Clients' views of sessions: live, or behind and catching up.",
    ),
    Metric("dragoman_turns_running", "gauge", (), "Turns that have not ended."),
    Metric("dragoman_turns_total", "counter", ("agent", "outcome"), "Ended turns by stop reason, or error."),
    Metric("dragoman_turn_seconds", "histogram", ("agent",), "How long turns took."),
    Metric(
        "dragoman_first_update_seconds",
        "histogram",
        ("agent",),
        "From the prompt to the agent's first update.",
    ),
    Metric("dragoman_agents", "gauge", ("agent",), "Agents that run."),
    Metric(
        "dragoman_agent_starts_total",
        "counter",
        ("agent", "outcome"),
        "Starts of agents: ok, error, cancelled.",
    ),
    Metric(
        "dragoman_agent_start_seconds", "histogram", ("agent",), "From the start to the answer to initialize."
    ),
    Metric("dragoman_agent_crashes_total", "counter", ("agent",), "Agents that ended unexpectedly."),
    Metric("dragoman_questions_open", "gauge", (), "Questions of agents that wait for a person."),
    Metric(
        "dragoman_questions_total",
        "counter",
        ("kind", "by"),
        "Answered questions by kind and by the source of the answer.",
    ),
    Metric("dragoman_question_wait_seconds", "histogram", ("kind",), "How long questions waited."),
    Metric(
        "dragoman_requests_total",
        "counter",
        ("method",),
        "Answered requests of clients; unknown methods are `other`.",
    ),
    Metric(
        "dragoman_request_errors_total",
        "counter",
        ("method",),
        "Requests of clients that were answered with an error.",
    ),
    Metric("dragoman_http_responses_total", "counter", ("status",), "HTTP responses that were begun."),
    Metric(
        "dragoman_received_bytes_total",
        "counter",
        ("transport",),
        "Bytes from clients: WebSocket data, HTTP bodies.",
    ),
    Metric(
        "dragoman_sent_bytes_total",
        "counter",
        ("transport",),
        "Bytes to clients: WebSocket frames, HTTP bodies.",
    ),
    Metric(
        "dragoman_client_queue_bytes", "gauge", (), "Bytes queued for clients that have not taken them yet."
    ),
    Metric("dragoman_journal_queue_bytes", "gauge", (), "Bytes on their way into the journal."),
    Metric("dragoman_journal_lag_events", "gauge", (), "Events of live sessions that are not stored yet."),
    Metric(
        "dragoman_journal_waiting",
        "gauge",
        (),
        "Live sessions that wait because their journal cannot be written.",
    ),
    Metric("dragoman_journal_broken", "gauge", (), "Live sessions that go on although they are not saved."),
    Metric("dragoman_audit_records_total", "counter", ("kind",), "Records of the audit by kind."),
    Metric(
        "dragoman_audit_decisions_total",
        "counter",
        ("decision",),
        "Decisions of the rules: allow, deny, ask.",
    ),
    Metric("dragoman_audit_failures_total", "counter", (), "Records of the audit that could not be written."),
    Metric("dragoman_audit_waiting", "gauge", (), "Acts that wait until they can be recorded."),
    Metric("dragoman_audit_anchor_waiting", "gauge", ("anchor",), "Lines that an anchor has not taken yet."),
    Metric("dragoman_audit_anchor_lag_seconds", "gauge", ("anchor",), "How long the oldest of them waits."),
    Metric(
        "dragoman_usage_tokens_total",
        "counter",
        ("agent", "kind"),
        "Tokens that agents told: input, output, cache_read, cache_write.",
    ),
    Metric(
        "dragoman_usage_cost_total",
        "counter",
        ("agent", "currency", "estimated"),
        "Cost of turns, as agents told it or estimated by usage.prices.",
    ),
    Metric(
        "dragoman_usage_unknown_turns_total", "counter", ("agent",), "Turns of which no figures are known."
    ),
    Metric("process_start_time_seconds", "gauge", (), "When this process started, in seconds since 1970."),
    Metric("process_cpu_seconds_total", "counter", (), "Processor time of this process."),
    Metric(
        "process_resident_memory_bytes",
        "gauge",
        (),
        "Resident memory of this process, where /proc is available.",
    ),
    Metric(
        "process_open_fds", "gauge", (), "Open files and sockets of this process, where /proc is available."
    ),
)


class Metrics:
    """Implements `Witness`."""

    def __init__(self) -> None:
        self.traffic = Traffic()
        self._counts: dict[str, Counter[tuple[str, ...]]] = {
            metric.name: Counter() for metric in METRICS if metric.kind == "counter"
        }
        self._times: dict[str, dict[tuple[str, ...], Histogram]] = {
            metric.name: {} for metric in METRICS if metric.kind == "histogram"
        }

    def count(self, name: str, *labels: str) -> None:
        self._counts[name][labels] += 1

    def time(self, name: str, seconds: float, *labels: str) -> None:
        series = self._times[name]
        if labels not in series:
            series[labels] = Histogram(SECONDS)
        series[labels].add(seconds)

    # -- Witness

    def turn(self, session_id: str, agent: str, meta: Mapping[str, object]) -> _Timed:
        def ended(seconds: float, outcome: str) -> None:
            self.count("dragoman_turns_total", agent, outcome)
            self.time("dragoman_turn_seconds", seconds, agent)

        return _Timed(ended, lambda seconds: self.time("dragoman_first_update_seconds", seconds, agent))

    def start(self, agent: str) -> _Timed:
        def ended(seconds: float, outcome: str) -> None:
            self.count("dragoman_agent_starts_total", agent, outcome)
            self.time("dragoman_agent_start_seconds", seconds, agent)

        return _Timed(ended)

    def crash(self, agent: str) -> None:
        self.count("dragoman_agent_crashes_total", agent)

    def question(self, session_id: str, kind: str) -> _Timed:
        def ended(seconds: float, by: str) -> None:
            self.count("dragoman_questions_total", kind, by)
            self.time("dragoman_question_wait_seconds", seconds, kind)

        return _Timed(ended)

    def request(self, method: str, failed: bool) -> None:
        known = method if method in KNOWN_METHODS else "other"
        self.count("dragoman_requests_total", known)
        if failed:
            self.count("dragoman_request_errors_total", known)

    def response(self, status: int) -> None:
        self.count("dragoman_http_responses_total", str(status))

    # -- the page

    async def answer(self, gateway: Gateway) -> Response:
        return Response(200, self.page(gateway), exposition.CONTENT_TYPE)

    def page(self, gateway: Gateway) -> bytes:
        looked_at = {
            **_gateway_samples(gateway),
            **_audit_samples(gateway.audit.figures()),
            **_usage_samples(gateway.usage.figures if gateway.usage is not None else UsageFigures()),
            **self.traffic.samples(),
            **process_samples(),
        }
        return (
            "\n".join(line for metric in METRICS for line in self._lines(metric, looked_at)).encode() + b"\n"
        )

    def _lines(self, metric: Metric, looked_at: Mapping[str, list[Sample]]) -> Iterable[str]:
        yield from exposition.head(metric.name, metric.kind, metric.meaning)
        if metric.name in looked_at:
            yield from exposition.lines(metric.name, looked_at[metric.name])
        elif metric.kind == "histogram":
            for labels, histogram in self._times[metric.name].items():
                yield from histogram.lines(metric.name, dict(zip(metric.labels, labels, strict=True)))
        elif metric.kind == "counter":
            counted = self._counts[metric.name].items()
            samples = [(dict(zip(metric.labels, labels, strict=True)), value) for labels, value in counted]
            yield from exposition.lines(metric.name, samples)


class _Timed:
    """Implements `Observed`."""

    carried: Mapping[str, str] = {}

    def __init__(
        self, ended: Callable[[float, str], None], first: Callable[[float], None] = lambda seconds: None
    ) -> None:
        self._began = time.monotonic()
        self._ended = ended
        self._first = first

    def first(self) -> None:
        self._first(time.monotonic() - self._began)

    def end(self, outcome: str, error: str = "") -> None:
        self._ended(time.monotonic() - self._began, outcome)


def _audit_samples(figures: AuditFigures) -> dict[str, list[Sample]]:
    return {
        "dragoman_audit_records_total": [({"kind": kind}, n) for kind, n in figures.records.items()],
        "dragoman_audit_decisions_total": [({"decision": each}, n) for each, n in figures.decisions.items()],
        "dragoman_audit_failures_total": [({}, figures.failures)],
        "dragoman_audit_waiting": [({}, figures.waiting)],
        "dragoman_audit_anchor_waiting": [({"anchor": each.place}, each.waiting) for each in figures.anchors],
        "dragoman_audit_anchor_lag_seconds": [
            ({"anchor": each.place}, round(each.lag, 3)) for each in figures.anchors
        ],
    }


def _usage_samples(figures: UsageFigures) -> dict[str, list[Sample]]:
    return {
        "dragoman_usage_tokens_total": [
            ({"agent": agent, "kind": kind}, n) for (agent, kind), n in figures.tokens.items()
        ],
        "dragoman_usage_cost_total": [
            ({"agent": agent, "currency": currency, "estimated": str(estimated).lower()}, amount / UNIT)
            for (agent, currency, estimated), amount in figures.cost.items()
        ],
        "dragoman_usage_unknown_turns_total": [({"agent": agent}, n) for agent, n in figures.unknown.items()],
    }


def _gateway_samples(gateway: Gateway) -> dict[str, list[Sample]]:
    sessions = list(gateway.sessions.values())
    attachments = [view for session in sessions for view in session.attachments]
    live = sum(attachment.live for attachment in attachments)
    journals = [session.journal for session in sessions if session.journal is not None]
    agents = Counter(agent.name for agent in gateway.pool.running())
    return {
        "dragoman_build_info": [({"version": __version__}, 1)],
        "dragoman_sessions": [({"state": s}, n) for s, n in Counter(each.state for each in sessions).items()],
        "dragoman_clients": [({}, len(gateway.clients))],
        "dragoman_attachments": [({"pace": "live"}, live), ({"pace": "behind"}, len(attachments) - live)],
        "dragoman_turns_running": [({}, sum(session.turn is not None for session in sessions))],
        "dragoman_agents": [({"agent": name}, number) for name, number in agents.items()],
        "dragoman_questions_open": [({}, sum(len(session.questions) for session in sessions))],
        "dragoman_client_queue_bytes": [({}, sum(client.backlog for client in gateway.clients))],
        "dragoman_journal_queue_bytes": [({}, gateway.store.backlog if gateway.store is not None else 0)],
        "dragoman_journal_lag_events": [
            ({}, sum(journal.seq - journal.delivered for journal in journals if not journal.broken))
        ],
        "dragoman_journal_waiting": [
            ({}, sum(journal.state is JournalState.WAITING for journal in journals))
        ],
        "dragoman_journal_broken": [({}, sum(journal.broken for journal in journals))],
    }
