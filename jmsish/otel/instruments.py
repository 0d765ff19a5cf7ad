"""The instruments of the metrics: those of OpenTelemetry's conventions for messaging clients, and some of our own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from opentelemetry.metrics import CallbackOptions, Histogram, Meter, Observation

BOUNDARIES = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10)
"""Of the histograms, in seconds, as the conventions advise."""

Depths = Callable[[], Iterable[tuple[int, dict[str, Any]]]]
"""Gives what is prefetched, and where."""


class Instruments:
    """Each is named for what it counts."""

    def __init__(self, meter: Meter, depths: Depths) -> None:
        self.durations = _histogram(
            meter, "messaging.client.operation.duration", "Duration of a send, a receive or a settlement."
        )
        self.process_durations = _histogram(
            meter, "messaging.process.duration", "Duration of the processing of a message."
        )
        count = meter.create_counter
        self.sent = count("messaging.client.sent.messages", "{message}", "Messages sent.")
        self.consumed = count("messaging.client.consumed.messages", "{message}", "Messages handed to the application.")
        self.redelivered = count(
            "jmsish.client.redelivered.messages", "{message}", "Of the consumed, those that had been delivered before."
        )
        self.rolled_back = count(
            "jmsish.client.rolled_back.transactions", "{transaction}", "Transactions rolled back, by whom."
        )
        self.in_doubt = count(
            "jmsish.client.in_doubt.operations", "{operation}", "Sends and commits whose outcome is not known."
        )
        self.reconnects = count(
            "jmsish.client.reconnects", "{connection}", "Connections that were lost and are there again."
        )

        self.lost = count(
            "jmsish.client.lost.deliveries",
            "{message}",
            "Deliveries lost with a connection, to come again.",
        )

        def observe(options: CallbackOptions) -> Iterable[Observation]:
            return [Observation(depth, attributes) for depth, attributes in depths()]

        meter.create_observable_up_down_counter(
            "jmsish.client.prefetched.messages", [observe], "{message}", "Messages here and not yet received."
        )


def _histogram(meter: Meter, name: str, description: str) -> Histogram:
    return meter.create_histogram(name, "s", description, explicit_bucket_boundaries_advisory=BOUNDARIES)
