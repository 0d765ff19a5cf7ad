"""Connection strings and tokens of Azure Service Bus."""

from __future__ import annotations

import base64
import hmac
import json
from hashlib import sha256
from urllib.parse import parse_qs, quote_plus

import pytest

from jmsish._facade import make_core
from jmsish.options import parse_url
from jmsish.profiles.shared_access import AccessKey, expiry_of, read_connection_string, type_of

STRING = "Endpoint=sb://ns.servicebus.windows.net/;SharedAccessKeyName=root;SharedAccessKey=c2VjcmV0LWtleQ=="


def test_a_connection_string_is_a_url_with_a_user_and_a_password() -> None:
    target = parse_url(STRING)
    assert (target.scheme, target.host, target.port) == ("amqps", "ns.servicebus.windows.net", 5671)
    assert (target.username, target.password) == ("root", "c2VjcmV0LWtleQ==")
    assert "c2VjcmV0" not in repr(target)


def test_its_order_and_spelling_do_not_matter_and_more_may_be_in_it() -> None:
    text = "SharedAccessKey=k=;EntityPath=q;endpoint=sb://h.servicebus.windows.net;SharedAccessKeyName=n"
    assert read_connection_string(text) == ("h.servicebus.windows.net", "n", "k=")


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("Endpoint=sb://h/;SharedAccessKeyName=n", "has no SharedAccessKey"),
        ("Endpoint=sb://h/;SharedAccessKey=sesame", "has no SharedAccessKeyName"),
        ("SharedAccessKeyName=n;SharedAccessKey=sesame", "has no Endpoint"),
        ("Endpoint=h;SharedAccessKeyName=n;SharedAccessKey=sesame", "is no sb://HOST/"),
    ],
)
def test_what_is_missing_is_named_and_no_key_shown(text: str, missing: str) -> None:
    with pytest.raises(ValueError, match=missing) as told:
        parse_url(text)
    assert "sesame" not in str(told.value)


def test_a_token_is_signed_with_the_key() -> None:
    token = AccessKey("root", "sesame").token("amqp://h/q", 1_700_000_000)
    fields = parse_qs(token.removeprefix("SharedAccessSignature "))
    assert fields["sr"] == ["amqp://h/q"] and fields["se"] == ["1700000000"] and fields["skn"] == ["root"]
    wanted = hmac.new(b"sesame", f"{quote_plus('amqp://h/q')}\n1700000000".encode(), sha256).digest()
    assert fields["sig"] == [base64.b64encode(wanted).decode()]
    assert "sesame" not in repr(AccessKey("root", "sesame"))


def web_token(claims: object) -> str:
    return ".".join(
        base64.urlsafe_b64encode(json.dumps(each).encode()).decode().rstrip("=") for each in ({}, claims, 1)
    )


@pytest.mark.parametrize(
    ("token", "kind", "expiry"),
    [
        (AccessKey("n", "k").token("a", 99), "servicebus.windows.net:sastoken", 99),
        (web_token({"exp": 1700000000}), "jwt", 1700000000),
        (web_token({"exp": True}), "jwt", None),
        (web_token({}), "jwt", None),
        (web_token([]), "jwt", None),
        ("a.b.c", "jwt", None),
        ("opaque", "jwt", None),
        ("SharedAccessSignature sr=a&se=x", "servicebus.windows.net:sastoken", None),
    ],
)
def test_a_token_says_what_it_is_and_how_long_it_holds(token: str, kind: str, expiry: int | None) -> None:
    assert (type_of(token), expiry_of(token)) == (kind, expiry)


def test_the_option_cbs_logs_in_as_nobody() -> None:
    core = make_core(parse_url(STRING, cbs=True), None)
    assert core.cbs is not None
    assert make_core(parse_url(STRING), None).cbs is None


def test_a_list_of_brokers_has_its_token_when_one_is_reached() -> None:
    """A `failover:` connection asks for it at each attempt, so there is none before the first."""
    core = make_core(parse_url("failover:(amqps://h)", cbs=True, token=lambda: "t"), None)
    assert core.cbs is not None and core.cbs.make is None


def test_cbs_needs_something_to_make_tokens_of() -> None:
    with pytest.raises(ValueError, match="cbs needs token, or user name and password"):
        make_core(parse_url("amqps://h", cbs=True), None)
