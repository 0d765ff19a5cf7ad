"""A telemetry that keeps what it tells, and the scenarios' four faces."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk", reason="the extra otel and opentelemetry-sdk are not installed")

from opentelemetry.sdk.metrics import MeterProvider  # noqa: E402
from opentelemetry.sdk.metrics.export import InMemoryMetricReader  # noqa: E402
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider  # noqa: E402
from opentelemetry.sdk.trace.export import SimpleSpanProcessor  # noqa: E402
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter  # noqa: E402

from jmsish import otel  # noqa: E402
from tests.scenarios.conftest import face, pytest_pyfunc_call  # noqa: E402

__all__ = ["face", "pytest_pyfunc_call"]


class Kept:
    """A telemetry, and what it has told."""

    def __init__(self) -> None:
        self._spans = InMemorySpanExporter()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self._spans))
        self._reader = InMemoryMetricReader()
        self.meters = MeterProvider([self._reader])
        self.telemetry = otel.Telemetry(tracer_provider=self.tracers, meter_provider=self.meters)

    def spans(self, name: str = "") -> list[ReadableSpan]:
        """The spans that have ended, of this name or all."""
        return [span for span in self._spans.get_finished_spans() if not name or span.name == name]

    def span(self, name: str) -> ReadableSpan:
        (span,) = self.spans(name)
        return span

    def points(self, metric: str) -> list[Any]:
        """The data points of a metric."""
        data = self._reader.get_metrics_data()
        return [
            point
            for resource in (data.resource_metrics if data else ())
            for scope in resource.scope_metrics
            for one in scope.metrics
            if one.name == metric
            for point in one.data.data_points
        ]

    def total(self, metric: str, **attributes: Any) -> int:
        """The sum of a counter, over the points with these attributes (dots written as underscores)."""
        wanted = {name.replace("__", "."): value for name, value in attributes.items()}
        return sum(p.value for p in self.points(metric) if wanted.items() <= dict(p.attributes).items())


@pytest.fixture
def kept() -> Kept:
    return Kept()
