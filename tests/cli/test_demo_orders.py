"""Orders from files: every format, headers, encodings and files that are not quite what their name says."""

from __future__ import annotations

import csv
import json

import pytest

from jmsish.cli.demo.orders import Order, digest, has_header, is_map_body, read_orders, split_lines


def bodies(data: bytes, name: str = "", **options: object) -> list[object]:
    return [order.body for order in read_orders(data, name, **options).orders]  # type: ignore[arg-type]


def test_each_line_of_a_text_file_is_an_order_blank_ones_too() -> None:
    assert bodies(b"one\n\nthree") == ["one", "", "three"]
    assert read_orders(b"one\ntwo\n").orders == (Order(1, "one"), Order(2, "two"))


def test_lines_end_as_in_an_editor() -> None:
    assert split_lines("a\r\nb\rc\nd") == ["a", "b", "c", "d"]
    assert split_lines("a\x0cb\u2028c\n") == ["a\x0cb\u2028c"]
    assert split_lines("") == []


def test_an_empty_file_holds_no_orders() -> None:
    for name in ("a.txt", "a.csv", "a.jsonl"):
        assert read_orders(b"", name).orders == ()


def test_a_csv_file_with_a_header_gives_rows_by_name() -> None:
    file = read_orders(b'id,city,amount\n1,Bern,2.50\n2,"Rome, north",3\n', "orders.csv")
    assert file.header == ("id", "city", "amount")
    assert [order.body for order in file.orders] == [
        {"id": "1", "city": "Bern", "amount": "2.50"},
        {"id": "2", "city": "Rome, north", "amount": "3"},
    ]


def test_a_csv_row_may_span_lines_and_be_short_or_long() -> None:
    assert bodies(b'id,note\n1,"two\nlines"\n2\n3,x,y\n', "a.csv") == [
        {"id": "1", "note": "two\nlines"},
        {"id": "2", "note": ""},
        {"id": "3", "note": "x", "column_3": "y"},
    ]


def test_a_csv_cell_may_be_long() -> None:
    assert bodies(b"id,note\n1," + b"x" * 300_000 + b"\n", "a.csv") == [{"id": "1", "note": "x" * 300_000}]


def test_what_csv_cannot_hold_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    limit = csv.field_size_limit(100)
    monkeypatch.setattr(csv, "field_size_limit", lambda *size: 100)
    try:
        with pytest.raises(ValueError, match="line 2 is not CSV"):
            read_orders(b"id,note\n1," + b"x" * 101 + b"\n", "a.csv")
    finally:
        monkeypatch.undo()
        csv.field_size_limit(limit)


@pytest.mark.parametrize("mark", [";", "\t", "|"])
def test_other_separators_are_found(mark: str) -> None:
    data = mark.join(["id", "name"]) + "\n" + mark.join(["7", "seven"]) + "\n"
    assert bodies(data.encode(), "a.csv") == [{"id": "7", "name": "seven"}]


def test_a_csv_file_without_a_header_keeps_its_first_row() -> None:
    assert bodies(b"1,Bern\n2,Rome\n", "a.csv") == ["1,Bern", "2,Rome"]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([["id", "amount"], ["a", "1"]], True),
        ([["name", "city"], ["Ann", "Bern"]], True),
        ([["Ann", "Bern"], ["Ann", "Rome"]], False),
        ([["3", "4"], ["1", "2"]], False),
        ([["name", ""], ["Ann", "1"]], False),
        ([["name", "name"], ["Ann", "1"]], False),
        ([["only"]], False),
    ],
)
def test_what_counts_as_a_header(rows: list[list[str]], expected: bool) -> None:
    assert has_header(rows) is expected


def test_flat_json_objects_become_maps_and_other_values_stay_text() -> None:
    lines = ['{"id": 1, "ok": true, "none": null}', '{"deep": [1]}', '"text"', "17", "null"]
    assert bodies("\n".join(lines).encode(), "a.jsonl") == [{"id": 1, "ok": True, "none": None}, *lines[1:]]


def test_a_line_that_is_not_json_is_named() -> None:
    with pytest.raises(ValueError, match="line 2 is not JSON"):
        read_orders(b'{"a": 1}\noops\n', "a.jsonl")


def test_json_lines_are_known_without_their_suffix() -> None:
    assert read_orders(b'{"a": 1}\n{"a": 2}\n').format == "jsonl"
    assert read_orders(b"{not json}\n").format == "text"


def test_the_format_can_be_forced() -> None:
    assert bodies(b"id,n\n1,2\n", "a.csv", format="text") == ["id,n", "1,2"]
    with pytest.raises(ValueError, match="unknown format"):
        read_orders(b"", format="xml")


def test_encodings() -> None:
    assert bodies("Zürich".encode()) == ["Zürich"]
    assert bodies("Zürich".encode("utf-8-sig")) == ["Zürich"]
    assert bodies("Zürich".encode("utf-16")) == ["Zürich"]
    assert bodies("Zürich".encode("latin-1")) == ["Zürich"]


def test_a_limit_takes_the_first_orders() -> None:
    assert bodies(b"a\nb\nc\n", limit=2) == ["a", "b"]


@pytest.mark.parametrize(
    ("value", "fits"),
    [
        ({"a": 1}, True),
        ({}, False),
        ({"": 1}, False),
        ({"a": 1 << 63}, False),
        ({"a": float("inf")}, False),
        ({"a": "\ud800"}, False),
        ({"a": {}}, False),
        ([1], False),
    ],
)
def test_what_fits_a_map_message(value: object, fits: bool) -> None:
    assert is_map_body(value) is fits


def test_fingerprints_do_not_depend_on_the_order_of_keys() -> None:
    assert digest({"a": 1, "b": "x"}) == digest(json.loads('{"b": "x", "a": 1}'))
    assert digest("a") != digest("b")
