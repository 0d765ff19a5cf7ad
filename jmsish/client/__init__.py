"""JMS meaning, without I/O: what the sessions, producers and consumers of one connection decide.

Nothing here knows a socket, a thread or a clock.  A driver owns a `ClientConnection`, feeds it bytes and the time,
takes bytes from it and steps its procedures (`procedures.py`).
"""
