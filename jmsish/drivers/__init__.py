"""Drivers: who moves bytes and time. All sockets, threads, locks and clocks of jmsish are in here."""

import os

if os.environ.get("JMSISH_TRACE"):
    from jmsish.drivers.frame_trace import follow_environment

    follow_environment()
