"""Options and URLs: what is understood, what is refused, and what the refusal says."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from typing import Any

import pytest

from jmsish._credentials import sasl_client
from jmsish.options import (
    QPID_NAMES,
    WITHOUT_EFFECT,
    ConnectionOptions,
    FailoverOptions,
    make_options,
    parse_url,
)

DEFAULTS = {
    "prefetch": 1000,
    "cancel_on_commit": "auto",
    "local_priority": False,
    "connect_timeout": 15,
    "request_timeout": 60,
    "send_timeout": None,
    "resend_in_flight": False,
    "idle_timeout": 60,
    "close_timeout": 60,
    "max_redeliveries": None,
    "redelivery_outcome": "modified_failed_undeliverable",
}


def test_defaults() -> None:
    options = ConnectionOptions()
    assert {name: getattr(options, name) for name in DEFAULTS} == DEFAULTS


@pytest.mark.parametrize("kind", [ConnectionOptions, FailoverOptions])
def test_defaults_are_as_their_checks_leave_them(kind: type) -> None:
    """A default is not checked when options are made."""
    for field in dataclasses.fields(kind):
        kept = field.metadata["kind"].check(field.name, field.default)
        assert (type(kept), kept) == (type(field.default), field.default)


def test_options_are_frozen_and_keywords_only() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        ConnectionOptions().prefetch = 5  # type: ignore[misc]
    with pytest.raises(TypeError):
        ConnectionOptions(5)  # type: ignore[call-arg]


GIVEN = [
    ("prefetch", 5, "jms.prefetch=5", 5),
    ("prefetch", 5, "jms.prefetchPolicy.all=5", 5),
    ("queue_prefetch", 5, "jms.prefetchPolicy.queuePrefetch=5", 5),
    ("topic_prefetch", 5, "jms.prefetchPolicy.topicPrefetch=5", 5),
    ("durable_topic_prefetch", 5, "jms.prefetchPolicy.durableTopicPrefetch=5", 5),
    ("browser_prefetch", 5, "jms.prefetchPolicy.queueBrowserPrefetch=5", 5),
    ("cancel_on_commit", "never", "jms.cancel_on_commit=never", "never"),
    ("local_priority", True, "jms.local_priority=true", True),
    ("local_priority", True, "jms.localMessagePriority=TRUE", True),
    ("connect_timeout", timedelta(seconds=2), "jms.connect_timeout=2", 2),
    ("connect_timeout", 1.5, "jms.connectTimeout=1500", 1.5),
    ("connect_timeout", 1.5, "transport.connectTimeout=1500", 1.5),
    ("request_timeout", 1.5, "jms.request_timeout=1.5", 1.5),
    ("request_timeout", None, "jms.requestTimeout=-1", None),
    ("send_timeout", 2, "jms.sendTimeout=2000", 2),
    ("send_timeout", None, "jms.send_timeout=none", None),
    ("close_timeout", 3, "jms.closeTimeout=3000", 3),
    ("idle_timeout", 30, "amqp.idleTimeout=30000", 30),
    ("idle_timeout", 0, "jms.idle_timeout=0", 0),
    ("resend_in_flight", True, "jms.resend_in_flight=true", True),
    ("max_redeliveries", 3, "jms.redeliveryPolicy.maxRedeliveries=3", 3),
    ("max_redeliveries", None, "jms.redeliveryPolicy.maxRedeliveries=-1", None),
    ("redelivery_outcome", "rejected", "jms.redeliveryPolicy.outcome=REJECTED", "rejected"),
    ("redelivery_outcome", "modified_failed", "jms.redeliveryPolicy.outcome=4", "modified_failed"),
    ("vhost", "a b", "amqp.vhost=a%20b", "a b"),
    ("vhost", "", "amqp.vhost=", ""),
    ("max_frame_size", 4096, "amqp.maxFrameSize=4096", 4096),
    ("sasl_mechanisms", ("PLAIN", "EXTERNAL"), "amqp.saslMechanisms=PLAIN,external", ("PLAIN", "EXTERNAL")),
    ("queue_prefix", "q.", "jms.queuePrefix=q.", "q."),
    ("topic_prefix", "t.", "jms.topicPrefix=t.", "t."),
    ("populate_user_id", True, "jms.populateJMSXUserID=true", True),
]


@pytest.mark.parametrize(("option", "keyword", "parameter", "value"), GIVEN)
def test_keyword_and_url_mean_the_same(option: str, keyword: Any, parameter: str, value: Any) -> None:
    assert getattr(make_options({option: keyword}), option) == value
    assert getattr(parse_url(f"amqp://h?{parameter}").options, option) == value


@pytest.mark.parametrize("name", sorted([*QPID_NAMES, *WITHOUT_EFFECT]))
def test_every_name_of_qpid_jms_is_documented_by_the_table(name: str) -> None:
    known = {field.name for kind in (ConnectionOptions, FailoverOptions) for field in dataclasses.fields(kind)}
    assert name in WITHOUT_EFFECT or QPID_NAMES[name][0] in known | {"username", "password", "client_id"}


def test_names_that_tune_other_machinery_have_no_effect() -> None:
    assert parse_url("amqp://h?transport.tcpNoDelay=true&amqp.traceFrames=x") == parse_url("amqp://h")


def test_a_keyword_wins_over_the_url() -> None:
    target = parse_url(
        "amqp://u:p@h?jms.prefetch=1&jms.clientID=a", prefetch=2, username="v", password="q", client_id="b"
    )
    assert (target.options.prefetch, target.username, target.password, target.client_id) == (2, "v", "q", "b")


WRONG = [
    ({"prefetch": -1}, ValueError, "prefetch=-1 is out of range"),
    ({"prefetch": 65536}, ValueError, "out of range"),
    ({"prefetch": "5"}, TypeError, "prefetch is a whole number"),
    ({"prefetch": True}, TypeError, "prefetch is a whole number"),
    ({"prefetch": None}, TypeError, "prefetch is a whole number"),
    ({"prefech": 1}, ValueError, "did you mean 'prefetch'"),
    ({"zzz": 1}, ValueError, "there are: .*cancel_on_commit"),
    ({"cancel_on_commit": "allways"}, ValueError, "did you mean 'always'"),
    ({"cancel_on_commit": 1}, TypeError, "one of auto, always, never"),
    ({"local_priority": 1}, TypeError, "True or False"),
    ({"connect_timeout": -1}, ValueError, "out of range"),
    ({"connect_timeout": float("inf")}, ValueError, "out of range"),
    ({"connect_timeout": float("nan")}, ValueError, "out of range"),
    ({"connect_timeout": "1"}, TypeError, "number of seconds"),
    ({"connect_timeout": True}, TypeError, "number of seconds"),
    ({"idle_timeout": None}, TypeError, "number of seconds"),
    ({"max_redeliveries": -1}, ValueError, "out of range"),
    ({"redelivery_outcome": "modified"}, ValueError, "did you mean 'modified_failed'"),
    ({"max_frame_size": 511}, ValueError, "out of range"),
    ({"token": "secret"}, TypeError, "callable"),
    ({"vhost": 1}, TypeError, "vhost is a str"),
    ({"sasl_mechanisms": ()}, ValueError, "one or more names"),
]


@pytest.mark.parametrize(("options", "error", "text"), WRONG)
def test_a_wrong_value_is_refused_by_name(options: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        make_options(options)
    with pytest.raises(error, match=text):
        parse_url("vm://x", **options)


WRONG_PARAMETERS = [
    ("jms.prefetc=1", "did you mean 'jms.prefetch'"),
    ("prefetch=1", "did you mean 'jms.prefetch'"),
    ("jms.prefetchPolicy.quePrefetch=1", "did you mean 'jms.prefetchPolicy.queuePrefetch'"),
    ("jms.prefetch=x", "jms.prefetch=x: not a whole number"),
    ("jms.prefetch", "has no value"),
    ("jms.local_priority=yes", "neither true nor false"),
    ("jms.sendTimeout=soon", "not a number"),
    ("jms.token=x", "only as a keyword"),
    ("jms.clock=x", "only as a keyword"),
    ("jms.forceSyncSend=true", "of Qpid JMS has no counterpart"),
    ("transport.trustStoreLocation=x", "TLS is set up by the options jms.tls_"),
    ("failover.maxReconnectAttempts=3", "is no failover URL"),
]


@pytest.mark.parametrize(("parameter", "text"), WRONG_PARAMETERS)
def test_a_wrong_parameter_is_refused_by_name(parameter: str, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        parse_url(f"amqp://h?{parameter}")


PLACES = [
    ("vm://Some-Name", ("vm", None, None, "Some-Name"), "vm://Some-Name"),
    ("amqp://h", ("amqp", "h", 5672, None), "amqp://h:5672"),
    ("amqps://h", ("amqps", "h", 5671, None), "amqps://h:5671"),
    ("amqp://h:1", ("amqp", "h", 1, None), "amqp://h:1"),
    ("amqp://h:1/", ("amqp", "h", 1, None), "amqp://h:1"),
    ("amqp://127.0.0.1:65535", ("amqp", "127.0.0.1", 65535, None), "amqp://127.0.0.1:65535"),
    ("amqp://[::1]", ("amqp", "::1", 5672, None), "amqp://[::1]:5672"),
    ("amqpws://h", ("amqpws", "h", 80, None), "amqpws://h:80"),
    ("wss://h", ("amqpwss", "h", 443, None), "amqpwss://h:443"),
    ("ws://h:8080/a/b?jms.prefetch=1", ("amqpws", "h", 8080, None), "amqpws://h:8080/a/b"),
    ("amqpwss://n.x/$servicebus/websocket", ("amqpwss", "n.x", 443, None), "amqpwss://n.x:443/$servicebus/websocket"),
    ("amqps://[fe80::1%eth0]:7?jms.prefetch=1", ("amqps", "fe80::1%eth0", 7, None), "amqps://[fe80::1%eth0]:7"),
]


@pytest.mark.parametrize(("url", "parts", "shown"), PLACES)
def test_where_a_url_leads(url: str, parts: tuple[Any, ...], shown: str) -> None:
    target = parse_url(url)
    assert (target.scheme, target.host, target.port, target.name) == parts
    assert target.url == shown and target.alternatives == (target,)


def test_credentials_are_decoded_and_not_shown() -> None:
    target = parse_url("amqp://us%40er:p%3Aw:d@h")
    assert (target.username, target.password) == ("us@er", "p:w:d")
    assert "p:w" not in repr(target) and target.url == "amqp://h:5672"
    assert parse_url("amqp://user@h").password is None
    by_query = parse_url("amqp://h?jms.username=a&jms.password=b+c")
    assert (by_query.username, by_query.password) == ("a", "b+c")


WRONG_URLS = [
    ("ampq://h", "unknown scheme 'ampq': did you mean 'amqp'.*known: vm, amqp, amqps, amqpws, amqpwss, failover"),
    ("ampqs://h", "did you mean 'amqps'"),
    ("http://h", r"unknown scheme 'http' \(in .*known: vm, amqp, amqps, amqpws, amqpwss, failover"),
    ("localhost:5672", "is no URL such as amqp://host:port"),
    ("", "is no URL"),
    ("amqp://", "names no host"),
    ("amqp://:5672", "names no host"),
    ("failover:(amqp://a,,amqp://b)", "names no single host"),
    ("amqp://a:1,b:2", r"several brokers are failover:\(amqp://a,amqp://b\)"),
    ("amqp://a b", "names no single host"),
    ("amqp://h:0", "no number from 1 to 65535"),
    ("amqp://h:65536", "no number from 1 to 65535"),
    ("amqp://h:x", "no number from 1 to 65535"),
    ("amqp://h:", "no number from 1 to 65535"),
    ("amqp://::1", "stands in brackets"),
    ("amqp://h/vhost", r"a virtual host is chosen by \?amqp.vhost=NAME"),
    ("amqpws://h/a b", "must be written as %XX"),
    ("amqpws://h/a#b", "has a path"),
    ("amqpw://h", "did you mean 'amqpws'"),
    ("vm://", "does not name an embedded broker"),
    ("failover:", "is not of the form"),
    ("failover:amqp://a", "is not of the form"),
    ("failover:()", "is no URL"),
    ("failover:(failover:(amqp://a))", "is no URL|failover"),
]


@pytest.mark.parametrize(("url", "text"), WRONG_URLS)
def test_a_wrong_url_is_refused(url: str, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        parse_url(url)


def test_a_url_is_a_text() -> None:
    with pytest.raises(TypeError, match="a URL is a str"):
        parse_url(b"amqp://h")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "url", ["amqp://u:secret@h:x?jms.password=secret", "ampq://u:secret@h", "failover:(amqp://u:secret@h:x)"]
)
def test_no_error_shows_a_password(url: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011  # any refusal will do: it is the text that counts
        parse_url(url)
    assert "secret" not in str(caught.value)


def test_m111_failover_keeps_the_brokers_in_order() -> None:
    target = parse_url(
        "failover:(amqp://u:p@a:1?amqp.saslMechanisms=PLAIN,ANONYMOUS&jms.prefetch=7, amqps://b)"
        "?jms.prefetch=5&jms.clientID=c&failover.maxReconnectAttempts=3&failover.reconnectDelay=20"
        "&failover.nested.amqp.idleTimeout=9000",
        send_timeout=4,
    )
    first, second = target.alternatives
    assert (target.scheme, target.url) == ("failover", "failover:(amqp://a:1,amqps://b:5671)")
    assert (first.username, first.options.sasl_mechanisms, first.options.prefetch) == ("u", ("PLAIN", "ANONYMOUS"), 7)
    assert (second.username, second.options.prefetch, second.options.idle_timeout) == (None, 5, 9)
    assert {t.client_id for t in (target, first, second)} == {"c"} and second.options.send_timeout == 4
    assert target.failover == FailoverOptions(max_reconnect_attempts=3, reconnect_delay=0.02)


def test_prefetch_by_sort_of_consumer() -> None:
    options = ConnectionOptions(prefetch=1, topic_prefetch=2, durable_topic_prefetch=3, browser_prefetch=4)
    assert (
        options.prefetch_for(),
        options.prefetch_for(topic=True),
        options.prefetch_for(topic=True, durable=True),
        options.prefetch_for(browser=True),
    ) == (1, 2, 3, 4)
    assert ConnectionOptions(queue_prefetch=9).prefetch_for() == 9
    assert ConnectionOptions(prefetch=6).prefetch_for(browser=True) == 6


# TLS, and what is secret.


def test_tls_options_are_options_like_others() -> None:
    url = "amqps://h?transport.verifyHost=false&jms.tls_ca=ca.pem&jms.tls_certificate=me.pem&jms.tls_key=me.key"
    options = parse_url(url, tls_key_password="opens-it", tls_server_name="other").options
    assert (options.tls_verify, options.tls_verify_host, options.tls_server_name) == (True, False, "other")
    assert (options.tls_ca, options.tls_certificate, options.tls_key) == ("ca.pem", "me.pem", "me.key")
    assert parse_url("amqps://h?transport.trustAll=true").options.tls_verify is False
    assert "opens-it" not in repr(options)


@pytest.mark.parametrize(
    "url",
    ["amqp://h?jms.tls_ca=x", "vm://b?jms.tls_ca=x", "amqpws://h?jms.tls_ca=x", "failover:(amqp://h)?jms.tls_ca=x"],
)
def test_options_of_tls_without_tls_are_an_error_and_not_passed_over(url: str) -> None:
    with pytest.raises(ValueError, match="tls_ca is for TLS, which .* has not: amqps://"):
        parse_url(url)
    assert parse_url("failover:(amqp://h,amqps://h)?jms.tls_ca=x").targets[1].options.tls_ca == "x"
    with pytest.raises(ValueError, match="tls_ca is for TLS, which amqp://a has not"):
        parse_url("failover:(amqp://a?jms.tls_ca=x,amqps://b)")
    assert parse_url("failover:(amqp://a,amqps://b?jms.tls_ca=x)").targets[1].options.tls_ca == "x"


@pytest.mark.parametrize("name", ["tls_ca", "tls_certificate", "tls_key", "tls_server_name"])
def test_an_empty_file_or_name_is_none_and_not_the_default(name: str) -> None:
    """As of a variable of the environment that is not set: an empty tls_ca trusted the system's authorities."""
    with pytest.raises(ValueError, match=f"{name} is empty"):
        parse_url("amqps://h", **{name: ""})
    with pytest.raises(ValueError, match=f"{name} is empty"):
        parse_url(f"amqps://h?jms.{name}=")
    with pytest.raises(ValueError, match=f"{name} has a NUL in it"):
        parse_url(f"amqps://h?jms.{name}=good%00evil")


@pytest.mark.parametrize("host", ["good\0.evil", "a\x1bb", "a\x7f", "a\udc80"])
def test_what_no_name_of_a_host_has_in_it(host: str) -> None:
    """A NUL ended it early for the resolver, and was a fault inside the asyncio client that connects again."""
    with pytest.raises(ValueError, match="names no single host"):
        parse_url(f"amqp://{host}:5672")


@pytest.mark.parametrize(
    ("url", "proxy", "exposed"),
    [
        ("amqp://localhost", None, False), ("amqp://localhost", "", False), ("amqp://localhost", "http://p:1", True),
        ("amqp://h", "", True), ("amqps://h", "http://p:1", False), ("amqpws://127.0.0.1", "", False),
    ],
)  # fmt: skip
def test_where_others_can_read_a_password(url: str, proxy: str | None, exposed: bool) -> None:
    sasl = sasl_client(parse_url(url, username="u", password="p", proxy=proxy), None, None)
    assert sasl is not None and sasl.exposed is exposed


SECRETS = ("hunter2", "hun/ter2", "hun?ter2", "hun@ter2", "hun,ter2", "hun#ter2", "hun:ter2", "hun(ter2)", "h ter2")


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize(
    "url",
    [
        "amqp://user:{}@h/path", "amqp://user:{}@h:x", "amqp://user:{}@", "amq://user:{}@h", "amqp://user:{}@h?jms.x=1",
        "amqp://user:{}", "amqp:user:{}@h", "failover:(amqp://a,amqp://user:{}@h:x)", "failover:amqp://user:{}@h",
        "amqp://h?jms.password={}&nothing", "amqp://h:x?jms.password={}", "amqp://user:{}@h?failover.randomize=true",
        "amqp://user:{}@[::1", "vm://?jms.password={}", "failover:(amqp://h?jms.password={}&jms.nothing=1)",
        "amqps://h?proxy=http://u:{}@", "amqps://h?jms.proxy=http://u:{}@p:x", "amqps://h?jms.proxy=http://u:{}",
    ],
)  # fmt: skip
def test_no_error_of_a_url_shows_the_password_in_it(url: str, secret: str) -> None:
    """Quoted or not, with its ``@`` or without; but what is read as a host or path is shown as one."""
    if "@" in secret and url == "amqp://user:{}":
        return
    try:
        target = parse_url(url.format(secret))
    except ValueError as error:
        assert "ter2" not in str(error)
    else:
        assert "ter2" not in target.url


@pytest.mark.parametrize(
    "proxy",
    ["bad x", "http://a b:1", "http://a\0b:1", "http://a\x7fb", "http://a,b:1", "http://a;b", "http://h:0", "http://(h)"],
)
def test_a_proxy_has_the_name_of_a_host(proxy: str) -> None:
    """As the broker has: what is none is told as what it is, and not looked up."""
    with pytest.raises(ValueError, match="proxy is an HTTP proxy, as http://host:port"):
        parse_url("amqp://h", proxy=proxy)


@pytest.mark.parametrize("name", ["vhost", "tls_key_password"])
def test_a_text_has_no_half_characters(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} has a lone surrogate"):
        parse_url("amqps://h", **{name: "a\ud800"})


def test_a_virtual_host_is_no_longer_than_the_name_of_a_host() -> None:
    """It is said in frames of 512 octets."""
    assert parse_url("amqp://h", vhost="é" * 127).options.vhost == "é" * 127
    with pytest.raises(ValueError, match="vhost has 255 octets at most"):
        parse_url("amqp://h", vhost="é" * 128)


def chain(error: BaseException | None) -> str:
    """An error and all that it came from, as a debugger shows them."""
    return "" if error is None else f"{error} {error!r} {chain(error.__cause__)} {chain(error.__context__)}"


@pytest.mark.parametrize(
    "given",
    [
        {"token": "hunter2"}, {"tls_key_password": b"hunter2"}, {"tls_key_password": "hunter2\udc80"},
        {"proxy": b"http://u:hunter2@h"}, {"proxy": "http://u:hunter2"}, {"proxy": "u:hunter2"},
        {"proxy": "http://u:hunter2/@h:1"}, {"proxy": "http://u:hunter2\udc80@h:1"}, {"tls_ca": b"hunter2"},
    ],
)  # fmt: skip
def test_no_error_of_an_option_shows_a_value_that_may_be_secret(given: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        parse_url("amqps://h", **given)
    assert next(iter(given)) in str(caught.value) and "hunter2" not in chain(caught.value)


def test_no_repr_shows_a_secret() -> None:
    target = parse_url("amqps://user:hunter2@h?jms.tls_key_password=hunter2&jms.proxy=http://u:hunter2@p:1")
    assert target.password == "hunter2" and "hunter2" not in repr(target) and "hunter2" not in str(target)


@pytest.mark.parametrize(
    "given", [{"username": "a\0b"}, {"username": "a\x01auth=x"}, {"password": "\0"}, {"password": "\udc80"}]
)
@pytest.mark.parametrize("url", ["amqp://h", "failover:(amqp://h)"])
def test_credentials_that_no_login_can_carry(url: str, given: dict[str, str]) -> None:
    """A NUL would end a field of PLAIN early (RFC 4616), \\x01 one of XOAUTH2: another name, or a part of it."""
    with pytest.raises(ValueError, match=r"has a control character or a lone surrogate") as caught:
        parse_url(url, **given)  # type: ignore[arg-type]
    assert not [value for value in given.values() if value in str(caught.value)]
    with pytest.raises(TypeError, match="password is a str, not bytes"):
        parse_url(url, username="a", password=b"hunter2")  # type: ignore[arg-type]


def test_no_delay_of_failover_is_without_end() -> None:
    with pytest.raises(ValueError, match="max_reconnect_delay=.* is out of range"):
        parse_url("failover:(amqp://h)?failover.maxReconnectDelay=-1")
