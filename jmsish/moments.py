"""Moments until which something is waited for: monotonic seconds, which a test may move on (`jmsish.testing`)."""

from __future__ import annotations


class RealMoment(float):
    """One that only real time brings, however far a clock is moved: until then a broker may answer what was asked."""

    __slots__ = ()
