"""Tests of the broker: without sockets, threads or real time."""
