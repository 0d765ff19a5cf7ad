"""`jmsish doctor`: what it finds, and what it says where something is wrong."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable
from typing import Any

import pytest
import trustme

import jmsish
from jmsish.cli.main import main
from jmsish.testing import RouterNetwork
from tests.relay import vacant_port
from tests.scenarios.test_websocket import Proxy

from . import servers

Told = tuple[int, dict[str, dict[str, str]], dict[str, Any]]
TRIALS = [
    "send", "receive", "transaction", "browse", "temporary queue", "delay", "selector", "subscription",
    "durable subscription",
]  # fmt: skip


@pytest.fixture
def doctor(capfd: pytest.CaptureFixture[str]) -> Callable[..., Told]:
    """The status, the findings by their names, and all of what it prints with --json."""

    def doctor(*arguments: str) -> Told:
        status = main(["doctor", *arguments, "--json"])
        out = capfd.readouterr().out
        told = json.loads(out)
        assert told["status"] == status
        return status, {each["what"]: each for each in told["findings"]}, told

    return doctor


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def server_context(authority: trustme.CA, name: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)
    return context


# -- all is well


def test_the_bundled_broker_over_tcp(capfd: pytest.CaptureFixture[str]) -> None:
    with jmsish.EmbeddedBroker() as broker:
        assert main(["doctor", broker.listen().url]) == 0
        left = [queue.name for queue in broker.queues() if queue.depth]
    lines = capfd.readouterr().out.splitlines()
    assert [line[5:26].strip() for line in lines if line.startswith("ok")] == [
        "resolve", "connect", "protocol", "open", "broker", "capabilities", *TRIALS,
    ]  # fmt: skip
    assert lines[-1] == "all works that the broker has"
    assert "AMQP 1.0, lets in by PLAIN, ANONYMOUS" in "\n".join(lines)
    assert not left, "it cleans up"


def test_over_tls(doctor: Callable[..., Told], authority: trustme.CA, tmp_path: Any) -> None:
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    with jmsish.EmbeddedBroker() as broker:
        url = broker.listen(ssl_context=server_context(authority, "127.0.0.1")).url
        status, found, _ = doctor(url, "--ca", str(tmp_path / "ca.pem"), "--no-trials")
    assert status == 0 and found["TLS"]["result"] == "ok"
    assert found["TLS"]["detail"].startswith("TLSv1.") and "certificate until" in found["TLS"]["detail"]
    assert "send" not in found


def test_in_memory(doctor: Callable[..., Told]) -> None:
    with jmsish.EmbeddedBroker() as broker:
        status, found, _ = doctor(broker.url, "--no-trials")
    assert status == 0 and set(found) == {"open", "broker", "capabilities"}


def test_at_a_router_only_a_queue_of_a_broker_is_tried(doctor: Callable[..., Told]) -> None:
    with jmsish.EmbeddedBroker() as broker, RouterNetwork("EA1", routes={"work.": ("EA1", broker.url)}) as network:
        status, found, _ = doctor(network["EA1"].url)
        assert status == 0 and set(found) == {"open", "broker", "capabilities", "trials"}
        assert found["trials"]["detail"].startswith("EA1 is a router, which keeps no messages")
        status, found, _ = doctor(network["EA1"].url, "--queue", "work.q")
    assert status == 0 and found["transaction"]["result"] == "ok"
    for trial in ("temporary queue", "subscription", "durable subscription"):
        assert found[trial]["result"] == "missing"


def test_what_is_missing_is_no_failure(doctor: Callable[..., Told]) -> None:
    with jmsish.EmbeddedBroker(profile="rabbitmq") as broker:
        broker.declare_queue("scratch")
        status, found, told = doctor(broker.listen().url, "--queue", "scratch")
    assert status == 0
    assert found["broker"]["detail"] == "RabbitMQ 4.1.0, profile rabbitmq"
    assert found["transaction"]["result"] == "missing"
    assert found["transaction"]["detail"].startswith("RabbitMQ has no transactions over AMQP 1.0")
    assert found["send"]["result"] == found["receive"]["result"] == "ok"
    assert told["summary"].startswith("all works that the broker has; missing: transaction, browse, temporary queue")


def test_a_trial_that_fails(doctor: Callable[..., Told]) -> None:
    with jmsish.EmbeddedBroker(config={"queues": {"few": {"max_messages": 1}}}) as broker:
        status, found, told = doctor(broker.listen().url, "--queue", "few", "--timeout", "2")
    assert status == 1 and found["receive"]["result"] == "failed"
    assert "SendRejectedError" in found["receive"]["detail"]
    assert told["summary"].startswith("receive")


# -- the way there


def test_an_unknown_host(doctor: Callable[..., Told]) -> None:
    status, found, told = doctor("amqp://no.such.host.invalid")
    assert status == 3 and list(found) == ["resolve"]
    assert "the host 'no.such.host.invalid' is not known" in found["resolve"]["detail"]
    assert "spelled right" in found["resolve"]["advice"]
    assert told["summary"] == "no connection: resolve failed"


def test_a_port_where_nobody_listens(doctor: Callable[..., Told]) -> None:
    with vacant_port() as port:
        place = f"127.0.0.1:{port}"
        status, found, _ = doctor(f"amqp://{place}")
    assert status == 3 and found["connect"]["detail"] == f"nobody listens at {place}"
    assert "is the broker running" in found["connect"]["advice"]


@pytest.mark.parametrize(
    ("answer", "name", "advice"),
    [
        (servers.amqp_091, "AMQP 0-9-1", "rabbitmq_amqp1_0"),
        (servers.amqp_091_of_few_words, "AMQP 0-9-1", "rabbitmq_amqp1_0"),
        (servers.amqp_010, "AMQP 0-10", "switched on"),
        (servers.stomp, "STOMP", "STOMP port"),
        (servers.mqtt, "MQTT", "MQTT port"),
        (servers.http, "HTTP", "web server"),
        (servers.http_of_few_words, "HTTP", "web server"),
        (servers.ssh, "SSH", "5672"),
    ],
)
def test_a_wrong_protocol_is_named(doctor: Callable[..., Told], answer: servers.Answer, name: str, advice: str) -> None:
    with servers.serving(answer) as place:
        status, found, _ = doctor(f"amqp://{place}", "--timeout", "2")
    assert status == 3 and found["protocol"]["result"] == "failed"
    assert found["protocol"]["detail"] == f"{place} speaks {name}, not AMQP 1.0"
    assert advice in found["protocol"]["advice"]


def test_tls_at_a_port_without(doctor: Callable[..., Told], authority: trustme.CA) -> None:
    with servers.serving(servers.closing, server_context(authority, "localhost")) as place:
        status, found, _ = doctor(f"amqp://{place}", "--timeout", "2")
    assert status == 3 and found["protocol"]["detail"] == f"{place} speaks TLS, not AMQP 1.0"
    assert found["protocol"]["advice"] == "use amqps:// in place of amqp://"


def test_no_tls_at_a_port_with(doctor: Callable[..., Told]) -> None:
    with jmsish.EmbeddedBroker() as broker:
        place = broker.listen().url.partition("://")[2]
        status, found, _ = doctor(f"amqps://{place}", "--timeout", "2")
    assert status == 3 and found["TLS"]["result"] == "failed"
    assert "speaks AMQP 1.0 without TLS: use amqp:// in place of amqps://" in found["TLS"]["advice"]


def test_http_at_a_port_for_tls(doctor: Callable[..., Told]) -> None:
    with servers.serving(servers.http) as place:
        _, found, _ = doctor(f"amqps://{place}", "--timeout", "2")
    assert found["TLS"]["advice"].startswith("this port speaks HTTP")


def test_http_inside_of_tls(doctor: Callable[..., Told], authority: trustme.CA) -> None:
    with servers.serving(servers.http, server_context(authority, "127.0.0.1")) as place:
        _, found, _ = doctor(f"amqps://{place}", "--insecure", "--timeout", "2")
    assert found["TLS"]["detail"].endswith("the certificate was not verified")
    assert found["protocol"]["detail"] == f"{place} speaks HTTP, not AMQP 1.0"


def test_a_certificate_for_another_name(doctor: Callable[..., Told], authority: trustme.CA, tmp_path: Any) -> None:
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    with servers.serving(servers.closing, server_context(authority, "broker.example.org")) as place:
        status, found, _ = doctor(f"amqps://{place}", "--ca", str(tmp_path / "ca.pem"))
    assert status == 3
    assert found["TLS"]["detail"] == "the certificate is not for '127.0.0.1' but for broker.example.org"
    assert "tls_server_name" in found["TLS"]["advice"]


def test_a_certificate_of_nobody_we_know(doctor: Callable[..., Told], authority: trustme.CA) -> None:
    with servers.serving(servers.closing, server_context(authority, "127.0.0.1")) as place:
        _, found, _ = doctor(f"amqps://{place}")
    assert found["TLS"]["detail"].startswith("nobody that is trusted here vouches for the certificate")
    assert "--ca FILE" in found["TLS"]["advice"]


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("protocol", ["amqp", "ws"])
def test_a_broker_that_wants_a_certificate_of_ours(
    doctor: Callable[..., Told], authority: trustme.CA, tmp_path: Any, protocol: str, version: ssl.TLSVersion
) -> None:
    """With TLS 1.3 it says so behind the handshake, where a silent broker was suspected."""
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    for name, issuer in (("alice", authority), ("stranger", trustme.CA())):
        issued = issuer.issue_cert(f"{name}@example.org", common_name=name)
        issued.private_key_and_cert_chain_pem.write_to_path(tmp_path / f"{name}.pem")
    context = server_context(authority, "127.0.0.1")
    authority.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED
    context.maximum_version = version
    stage = "WebSocket" if protocol == "ws" else "protocol"
    if version is ssl.TLSVersion.TLSv1_2:  # which says so within
        stage = "TLS"
    with jmsish.EmbeddedBroker() as broker:
        url = broker.listen(ssl_context=context, protocol=protocol).url
        common = (url, "--ca", str(tmp_path / "ca.pem"), "--no-trials")
        status, found, _ = doctor(*common)
        word = "certificate required" if stage != "TLS" else "handshake failure"
        assert status == 3 and word in found[stage]["detail"]
        assert "--cert" in found[stage]["advice"]
        _, found, _ = doctor(*common, "--cert", str(tmp_path / "stranger.pem"))
        assert "the peer did not accept the certificate: unknown ca" in found[stage]["detail"]
        status, found, _ = doctor(*common, "--cert", str(tmp_path / "alice.pem"))
        assert status == 0 and "lets in by EXTERNAL" in found["protocol"]["detail"]


def test_a_broker_that_never_answers(doctor: Callable[..., Told]) -> None:
    with servers.serving(servers.silent) as place:
        status, found, _ = doctor(f"amqp://{place}", "--timeout", "0.2")
    assert status == 3 and "says nothing that is known here" in found["protocol"]["detail"]


def test_a_server_that_closes_at_once(doctor: Callable[..., Told]) -> None:
    with servers.serving(servers.closing) as place:
        status, found, _ = doctor(f"amqp://{place}", "--timeout", "2")
    assert status == 3 and "or closes it" in found["protocol"]["detail"]


# -- who is let in


@pytest.fixture
def guarded() -> Any:
    with jmsish.EmbeddedBroker(config={"users": {"alice": {"password": "secret"}}}) as broker:
        yield broker.listen().url


def test_a_refused_mechanism(doctor: Callable[..., Told], guarded: str) -> None:
    status, found, told = doctor(guarded)
    assert status == 4 and found["open"]["result"] == "failed"
    assert "SCRAM-SHA-256" in found["protocol"]["detail"], "and which there are"
    assert "--username" in found["open"]["advice"] and told["summary"] == "no connection: open failed"


def test_a_wrong_password(doctor: Callable[..., Told], guarded: str) -> None:
    status, found, told = doctor(guarded, "--username", "alice", "--password", "wrong-one")
    assert status == 4 and "is the user name right" in found["open"]["advice"]
    assert "wrong-one" not in json.dumps(told)


def test_the_right_one(doctor: Callable[..., Told], guarded: str) -> None:
    assert doctor(guarded, "--username", "alice", "--password", "secret", "--no-trials")[0] == 0


# -- several


def test_a_list_says_which_host_is_wrong(capfd: pytest.CaptureFixture[str]) -> None:
    with jmsish.EmbeddedBroker() as broker:
        url = f"failover:(amqp://no.such.host.invalid:5672,{broker.listen().url})"
        assert main(["doctor", url, "--no-trials"]) == 1
    out = capfd.readouterr().out
    assert "amqp://no.such.host.invalid:5672" in out and "the host 'no.such.host.invalid' is not known" in out
    assert "resolve failed" in out


def test_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "http://localhost"]) == 2
    assert "unknown scheme" in capsys.readouterr().err


# -- WebSocket, and a proxy


def test_a_websocket_is_a_stage_of_its_own(doctor: Callable[..., Told]) -> None:
    with jmsish.EmbeddedBroker() as broker:
        status, found, told = doctor(broker.listen(protocol="ws").url, "--no-trials")
    assert status == 0 and found["WebSocket"]["detail"] == "the subprotocol amqp at /"
    assert found["protocol"]["detail"].startswith("AMQP 1.0, lets in by ")
    order = [each["what"] for each in told["findings"]]
    assert order[:6] == ["resolve", "connect", "TLS", "WebSocket", "protocol", "open"]


@pytest.mark.parametrize(
    ("answer", "detail", "advice"),
    [
        (servers.amqp_091, "speaks AMQP without WebSocket", "speaks AMQP 0-9-1; "),
        (servers.stomp, "ended the connection", "speaks STOMP; "),
        (servers.ssh, "does not speak HTTP", "speaks SSH; "),
        (servers.http, "HTTP 400", "is the path of the URL right?"),
        (servers.silent, "did not answer the handshake within 0.3 s", "5672"),
    ],
)
def test_what_is_no_websocket_is_named(
    doctor: Callable[..., Told], answer: servers.Answer, detail: str, advice: str
) -> None:
    with servers.serving(answer) as place:
        status, found, _ = doctor(f"amqpws://{place}", "--timeout", "0.3" if answer is servers.silent else "5")
    assert status == 3 and detail in found["WebSocket"]["detail"] and advice in found["WebSocket"]["advice"]
    assert "open" not in found


def test_a_port_of_amqp_is_not_one_of_websocket(doctor: Callable[..., Told], authority: trustme.CA) -> None:
    with jmsish.EmbeddedBroker() as broker:
        plain = broker.listen().url.partition("://")[2]
        _, found, _ = doctor(f"amqpws://{plain}")
        assert found["WebSocket"]["advice"].endswith("use amqp:// in place of amqpws://")
        secure = broker.listen(ssl_context=server_context(authority, "127.0.0.1")).url.partition("://")[2]
        _, found, _ = doctor(f"amqpwss://{secure}", "--insecure")
        assert found["WebSocket"]["advice"].endswith("use amqps:// in place of amqpwss://")
        _, found, _ = doctor(f"amqpws://{secure}")
        assert found["WebSocket"]["advice"] == "use amqpwss:// in place of amqpws://"


@pytest.mark.parametrize("protocol", ["amqp", "ws"])
def test_the_way_of_a_proxy_is_gone(doctor: Callable[..., Told], protocol: str) -> None:
    proxy = Proxy()
    with jmsish.EmbeddedBroker() as broker:
        url = broker.listen(protocol=protocol).url
        status, found, _ = doctor(url, "--option", f"proxy={proxy.url}", "--no-trials")
    assert status == 0 and "of the proxy" in found["resolve"]["detail"] and "s3cret" not in str(found)
    proxy.close()


def test_a_proxy_that_refuses_is_told(doctor: Callable[..., Told]) -> None:
    proxy = Proxy(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
    status, found, _ = doctor("amqp://broker.invalid", "--option", f"proxy={proxy.url}")
    assert status == 3 and "the proxy answered HTTP 407" in found["connect"]["detail"]
    proxy.close()


def test_a_broker_of_a_list_that_is_not_there_is_one_line_of_the_log(
    doctor: Callable[..., Told], caplog: pytest.LogCaptureFixture
) -> None:
    with jmsish.EmbeddedBroker() as broker, vacant_port() as port:
        doctor(f"failover:(amqp://127.0.0.1:{port},{broker.listen().url})")
    assert caplog.text.count("is not reached") == 1
