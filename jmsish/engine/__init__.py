"""AMQP 1.0 for one connection, in either role: bytes in, events out, bytes out."""
