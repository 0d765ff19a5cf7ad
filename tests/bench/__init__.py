"""Benchmarks: programs, run by hand and compared with each other in one run. No test asserts a time."""
