"""Orders: the lines of a text file, the rows of a CSV file, the values of a JSON-lines file.

Pure: text in, `Order` values out. What an order carries as a message body follows from the file: a line of text is
a `str` (TextMessage), a CSV row under a header and a flat JSON object are a `dict` (MapMessage); every other JSON
value travels as its text, so that no file is refused for the shape of its data.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
from dataclasses import dataclass
from typing import Any

Body = str | dict[str, Any]

FORMATS = ("auto", "text", "csv", "jsonl")
_SUFFIXES = {".csv": "csv", ".tsv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
_LONG = 1 << 63


@dataclass(frozen=True)
class Order:
    """One order: its number in the file (from 1) and the body of its message."""

    number: int
    body: Body

    @property
    def digest(self) -> str:
        return digest(self.body)


@dataclass(frozen=True)
class OrderFile:
    """What was read: the orders, how they were understood, and the header of a CSV file that has one."""

    orders: tuple[Order, ...]
    format: str
    header: tuple[str, ...] = ()


def digest(body: object) -> str:
    """A short fingerprint of a body; equal bodies have equal fingerprints whatever the order of their keys."""
    text = body if isinstance(body, str) else json.dumps(body, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def decode(data: bytes) -> str:
    """The text of a file: UTF-8 (with or without a mark) or UTF-16 with a mark, else Latin-1, which takes any
    octets.
    """
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def read_orders(data: bytes, name: str = "", *, format: str = "auto", limit: int | None = None) -> OrderFile:
    """The orders in `data`; `format` "auto" goes by the ending of the name, then by what the first line looks like."""
    text = decode(data)
    chosen = detect_format(text, name) if format == "auto" else format
    if chosen == "csv":
        bodies, header = _csv_bodies(text, "\t" if name.lower().endswith(".tsv") else None)
    elif chosen == "jsonl":
        bodies, header = _json_bodies(text), ()
    elif chosen == "text":
        bodies, header = list(split_lines(text)), ()
    else:
        raise ValueError(f"unknown format {format!r}: one of {', '.join(FORMATS)}")
    orders = tuple(Order(number, body) for number, body in enumerate(bodies[:limit], 1))
    return OrderFile(orders, chosen, header)


def detect_format(text: str, name: str = "") -> str:
    lowered = name.lower()
    for suffix, format in _SUFFIXES.items():
        if lowered.endswith(suffix):
            return format
    first = text.lstrip().partition("\n")[0]
    return "jsonl" if first.startswith("{") and _json_or_none(first) is not None else "text"


def split_lines(text: str) -> list[str]:
    """Lines as an editor counts them: ended by LF, CR LF or CR. (`str.splitlines` would also cut at form feeds.)"""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if lines[-1] == "":
        lines.pop()
    return lines


def _csv_bodies(text: str, delimiter: str | None) -> tuple[list[Body], tuple[str, ...]]:
    mark = delimiter or _delimiter(text)
    rows = _csv_rows(text, mark)
    if not rows:
        return [], ()
    if not has_header(rows):
        return [mark.join(row) for row in rows], ()
    header = tuple(name.strip() for name in rows[0])
    return [_row_body(header, row) for row in rows[1:]], header


def _csv_rows(text: str, mark: str) -> list[list[str]]:
    """All rows but blank ones."""
    csv.field_size_limit(max(csv.field_size_limit(), len(text) + 1))
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=mark)
    try:
        return [row for row in reader if any(cell.strip() for cell in row)]
    except csv.Error as error:
        raise ValueError(
            f"line {reader.line_num} is not CSV: {error} (--format text takes lines as they are)"
        ) from error


def _row_body(header: tuple[str, ...], row: list[str]) -> dict[str, Any]:
    """A row under its header; cells beyond the header get a name of their own, so that none is dropped."""
    names = [*header, *(f"column_{index + 1}" for index in range(len(header), len(row)))]
    return dict(zip(names, [*row, *[""] * (len(header) - len(row))], strict=False))


def _delimiter(text: str) -> str:
    """The mark that the first line has most of; a comma where it has none."""
    first = text.lstrip("\r\n").partition("\n")[0]
    return max(",;\t|", key=first.count) if any(mark in first for mark in ",;\t|") else ","


def has_header(rows: list[list[str]]) -> bool:
    """Whether the first row names columns: all names, no two alike, and in some column unlike what stands below.

    A row of names over columns that are all words cannot be told from data; it counts as a header when its names
    look like identifiers and none of them occurs again in its own column.
    """
    names = [cell.strip() for cell in rows[0]]
    if not all(names) or len(set(names)) < len(names) or any(_is_number(name) for name in names):
        return False
    below = [row for row in rows[1:51] if len(row) >= len(names)]
    if not below:
        return len(names) > 1 and all(_is_identifier(name) for name in names)
    for index in range(len(names)):
        cells = [row[index].strip() for row in below if row[index].strip()]
        if cells and all(_is_number(cell) for cell in cells):
            return True
    repeated = any(row[index].strip() == name for row in below for index, name in enumerate(names))
    return not repeated and all(_is_identifier(name) for name in names)


def _is_identifier(name: str) -> bool:
    return name.replace(" ", "_").replace("-", "_").replace(".", "_").isidentifier() and len(name) <= 40


def _is_number(cell: str) -> bool:
    try:
        float(cell.replace(",", ""))
    except ValueError:
        return False
    return True


def _json_bodies(text: str) -> list[Body]:
    bodies: list[Body] = []
    for number, line in enumerate(split_lines(text), 1):
        if not line.strip():
            continue
        value = _json_or_none(line)
        if value is None and line.strip() != "null":
            raise ValueError(
                f"line {number} is not JSON: {line.strip()[:60]!r} (--format text takes lines as they are)"
            )
        bodies.append(value if is_map_body(value) else line.strip())
    return bodies


def _json_or_none(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None


def is_map_body(value: object) -> bool:
    """Whether a JSON value fits a MapMessage: an object with names, whose values are text, numbers, truth values or
    null.
    """
    return isinstance(value, dict) and bool(value) and all(name and _is_plain(item) for name, item in value.items())


def _is_plain(item: object) -> bool:
    if isinstance(item, bool) or item is None:
        return True
    if isinstance(item, str):
        return not any("\ud800" <= sign <= "\udfff" for sign in item)  # a lone surrogate cannot be written as UTF-8
    if isinstance(item, int):
        return -_LONG <= item < _LONG
    return isinstance(item, float) and math.isfinite(item)
