"""AMQP 1.0 values and their octets: one door to :mod:`~jmsish.engine.encoding` and :mod:`~jmsish.engine.decoding`."""

from __future__ import annotations

from jmsish.engine.decoding import DecodeError, decode, decode_plain
from jmsish.engine.encoding import (
    EMPTY_LIST,
    FALSE,
    NULL,
    TRUE,
    encode,
    encode_binary,
    encode_boolean,
    encode_described,
    encode_int,
    encode_list,
    encode_long,
    encode_map,
    encode_string,
    encode_symbol,
    encode_symbols,
    encode_timestamp,
    encode_ubyte,
    encode_uint,
    encode_ulong,
    encode_ushort,
)

__all__ = [
    "DecodeError",
    "EMPTY_LIST",
    "FALSE",
    "NULL",
    "TRUE",
    "decode",
    "decode_plain",
    "encode",
    "encode_binary",
    "encode_boolean",
    "encode_described",
    "encode_int",
    "encode_list",
    "encode_long",
    "encode_map",
    "encode_string",
    "encode_symbol",
    "encode_symbols",
    "encode_timestamp",
    "encode_ubyte",
    "encode_uint",
    "encode_ulong",
    "encode_ushort",
]
