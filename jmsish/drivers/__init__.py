"""Drivers: who moves bytes and time. All sockets, threads, locks and clocks of jmsish are in here."""
