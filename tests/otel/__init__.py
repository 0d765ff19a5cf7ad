"""Traces and metrics, seen by OpenTelemetry's exporters in memory."""
