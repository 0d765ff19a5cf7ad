"""`jmsish user` and `jmsish cert`: what they write, what they say, and that a broker and a client take it."""

from __future__ import annotations

import io
import os
import ssl
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization

import jmsish
from jmsish.broker.users_file import parse_users
from jmsish.cli.main import build_parser
from jmsish.cli.parsing import CommandError, connection_options, read_target
from jmsish.cli.user import ask_password

from .conftest import Complaint, Run

FEW = ("--iterations", "4096")


def test_users_are_added_changed_listed_and_removed(tmp_path: Path, run: Run, complaint: Complaint) -> None:
    path = tmp_path / "users.toml"
    file = str(path)
    run("user", "add", file, "alice", *FEW, stdin="secret\n")
    run("user", "add", file, "bob", *FEW, stdin="word\n")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and os.listdir(tmp_path) == ["users.toml"]
    assert list(parse_users(path.read_text())) == ["alice", "bob"] and "secret" not in path.read_text()
    assert "right" in run("user", "verify", file, "alice", stdin="secret\n")
    for name, word in (("alice", b"wrong\n"), ("nobody", b"secret\n"), ("alice", b"\n")):
        assert complaint("user", "verify", file, name, stdin=word) == (1, "jmsish: name and password do not fit\n")
    run("user", "passwd", file, "alice", *FEW, stdin="other\n")
    assert "right" in run("user", "verify", file, "alice", stdin="other\n")
    listed = run("user", "list", file)
    assert listed.splitlines()[0] == "alice\tSCRAM-SHA-256 (4096 iterations), SCRAM-SHA-512 (4096 iterations)"
    assert parse_users(path.read_text())["alice"].keys["SCRAM-SHA-256"].text() not in listed
    run("user", "remove", file, "bob")
    assert list(parse_users(path.read_text())) == ["alice"]


def test_a_password_is_utf_8_whatever_the_locale(tmp_path: Path, run: Run, complaint: Complaint) -> None:
    file = str(tmp_path / "users.toml")
    run("user", "add", file, "alice", *FEW, stdin="p\u00e4ssword\r\n")  # the standard input of `run` is for ASCII
    assert "right" in run("user", "verify", file, "alice", stdin="p\u00e4ssword\n")
    latin = complaint("user", "verify", file, "alice", stdin=b"p\xe4ssword\n")
    assert latin == (1, "jmsish: the password is not UTF-8\n")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_who_types_no_password_hears_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of a terminal's input, by Ctrl-D, was a traceback."""

    def ended(prompt: str) -> str:
        raise EOFError

    monkeypatch.setattr("getpass.getpass", ended)
    monkeypatch.setattr(sys, "stdin", Terminal())
    with pytest.raises(CommandError, match="no password was given"):
        ask_password(twice=True)


@pytest.mark.parametrize(
    ("arguments", "stdin", "said"),
    [
        (("add", "FILE", "alice"), b"x\n", "has a user 'alice' already"),
        (("add", "FILE", "\uff41lice"), b"x\n", "'\uff41lice' is the same to a login, by SASLprep"),
        (("add", "FILE", "bob"), b"\n", "the password is empty"),
        (("add", "FILE", ""), b"x\n", "cannot be the name of a user"),
        (("add", "FILE", "bob", "--iterations", "10"), b"x\n", "iteration"),
        (("passwd", "FILE", "nobody"), b"x\n", "has no user 'nobody'"),
        (("remove", "FILE", "nobody"), b"", "has no user 'nobody'"),
        (("list", "none.toml"), b"", "none.toml: No such file"),
        (("verify", "none.toml", "alice"), b"x\n", "none.toml: No such file"),
    ],
)
def test_what_cannot_be_done(
    tmp_path: Path, run: Run, complaint: Complaint, arguments: tuple[str, ...], stdin: bytes, said: str
) -> None:
    path = tmp_path / "users.toml"
    run("user", "add", str(path), "alice", *FEW, stdin="secret\n")
    before = path.read_text()
    status, text = complaint("user", *(str(path) if each == "FILE" else each for each in arguments), stdin=stdin)
    assert status == 1 and said in text
    assert path.read_text() == before


def test_certificates_are_taken_by_broker_and_client(tmp_path: Path, run: Run) -> None:
    """The recipe of docs/security.md."""
    place = tmp_path / "certs"
    run("cert", str(place), "--client", "alice")
    made = sorted(os.listdir(place))
    assert made == [f"{name}.{kind}" for name in ("ca", "client-alice", "server") for kind in ("key", "pem")]
    modes = {name: stat.S_IMODE((place / name).stat().st_mode) for name in made}
    assert all(mode == (0o600 if name.endswith(".key") else 0o644) for name, mode in modes.items())
    file = {name: str(place / name) for name in made}
    with jmsish.EmbeddedBroker() as broker:
        listener = broker.listen(
            certificate=file["server.pem"],
            key=file["server.key"],
            client_ca=file["ca.pem"],
            require_client_certificate=True,
        )
        options: dict[str, Any] = {
            "tls_ca": file["ca.pem"],
            "tls_certificate": file["client-alice.pem"],
            "tls_key": file["client-alice.key"],
        }
        for host in ("localhost", "127.0.0.1"):
            with jmsish.connect(f"amqps://{host}:{listener.port}", **options):
                assert broker.connections()[0].identity == "alice"
        authority = (place / "ca.pem").read_text()
        run("cert", str(place), "--host", "broker.example")
        assert (place / "ca.pem").read_text() == authority
        with jmsish.connect(
            f"amqps://127.0.0.1:{listener.port}", **options, tls_server_name="broker.example"
        ):  # the broker shows the new one by itself
            pass
        with pytest.raises(jmsish.ConnectionLostError, match="mismatch"):
            jmsish.connect(f"amqps://127.0.0.1:{listener.port}", **options)


def test_a_server_certificate_is_none_for_a_client(tmp_path: Path, run: Run) -> None:
    run("cert", str(tmp_path))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(tmp_path / "ca.pem"))
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(tmp_path / "server.pem", tmp_path / "server.key")
    with jmsish.EmbeddedBroker() as broker:
        listener = broker.listen(ssl_context=context)
        options = {"tls_ca": str(tmp_path / "ca.pem"), "tls_certificate": str(tmp_path / "server.pem")}
        with pytest.raises(jmsish.JMSError):
            jmsish.connect(f"amqps://localhost:{listener.port}", **options, tls_key=str(tmp_path / "server.key"))


@pytest.mark.parametrize(
    "arguments",
    [
        ("--client", "a/b"), ("--client", ".x"), ("--host", "x" * 70), ("--host", "a..b"), ("--host", "broker:5671"),
        ("--host", "10.0.0.0/8"), ("--host", "a b"), ("--host", "''"), ("--days", "5000"),
        ("--days", "999999999999"),
    ],
)  # fmt: skip
def test_what_no_certificate_can_be_for(tmp_path: Path, complaint: Complaint, arguments: tuple[str, str]) -> None:
    status, said = complaint("cert", str(tmp_path), *arguments)
    assert status == 1 and arguments[1] in said


def test_a_certificate_does_not_outlive_its_authority(tmp_path: Path, complaint: Complaint) -> None:
    status, said = complaint("cert", str(tmp_path), "--days", "5000")
    assert status == 1 and "ca.pem, which is good until 20" in said and "--days 3649 is the most" in said


def test_the_name_of_a_host_may_be_longer_than_a_common_name(tmp_path: Path, run: Run) -> None:
    host = f"{'broker-' * 8}1.{'region-' * 3}1.example"
    assert len(host) > 64
    run("cert", str(tmp_path), "--host", host, "--host", "*.test.example")
    with jmsish.EmbeddedBroker() as broker:
        listener = broker.listen(certificate=str(tmp_path / "server.pem"), key=str(tmp_path / "server.key"))
        for name in (host, "any.test.example"):
            options: dict[str, Any] = {"tls_ca": str(tmp_path / "ca.pem"), "tls_server_name": name}
            jmsish.connect(f"amqps://127.0.0.1:{listener.port}", **options).close()


def test_files_of_the_command_line_are_the_options_of_tls(tmp_path: Path, run: Run, complaint: Complaint) -> None:
    """Named where they are wrong, not passed over where there is no TLS, and no terminal is asked to open a key."""
    run("cert", str(tmp_path), "--client", "alice")
    place = {name: str(tmp_path / name) for name in os.listdir(tmp_path)}
    key = serialization.load_pem_private_key((tmp_path / "client-alice.key").read_bytes(), None)
    form, locked = serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"opens-it")
    (tmp_path / "locked.key").write_bytes(key.private_bytes(serialization.Encoding.PEM, form, locked))
    mine = ("--cert", place["client-alice.pem"], "--key", str(tmp_path / "locked.key"))
    with jmsish.EmbeddedBroker() as broker:
        files = {"certificate": place["server.pem"], "key": place["server.key"], "client_ca": place["ca.pem"]}
        secure = f"amqps://localhost:{broker.listen(**files, require_client_certificate=True).port}"
        send = ("send", secure, "q", "-m", "x", "--ca")
        for arguments, text in (
            ((*send, "none.pem"), "tls_ca='none.pem': No such file"),
            ((*send, ""), "tls_ca is empty"),
            ((*send, place["ca.pem"], *mine), "the key is encrypted, and there is no tls_key_password"),
            ((*send, place["ca.pem"], *mine[2:]), "tls_key is the key of tls_certificate"),
            (("send", broker.listen().url, "q", "-m", "x", "--ca", place["ca.pem"]), "tls_ca is for TLS"),
        ):
            status, said = complaint(*arguments)
            assert status and text in said
        run(*send, place["ca.pem"], *mine, "--option", "tls_key_password=opens-it")
        assert broker.queue("q").depth == 1
        # The KEY of a binding is no file, and --key is no pattern.
        more = ("--ca", place["ca.pem"], *mine, "--option", "tls_key_password=opens-it")
        run("bind", secure, "amq.topic", "q", *more)
        run("bind", secure, "amq.topic", "q", "eu.#", *more)
        assert sorted(binding.key for binding in broker.exchange("amq.topic").bindings()) == ["", "eu.#"]


def test_somebody_elses_authority_is_left_alone(tmp_path: Path, complaint: Complaint) -> None:
    (tmp_path / "ca.pem").write_text("of somebody else")
    status, said = complaint("cert", str(tmp_path))
    assert status == 1 and "ca.pem" in said and (tmp_path / "ca.pem").read_text() == "of somebody else"


def test_without_the_library_it_says_what_to_install(
    tmp_path: Path, complaint: Complaint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jmsish.cli.cert.find_spec", lambda name: None)
    status, said = complaint("cert", str(tmp_path))
    assert status == 1 and "pip install 'jmsish[cert]'" in said


def test_a_broker_for_other_machines_is_refused_in_one_line(complaint: Complaint) -> None:
    status, said = complaint("broker", "--host", "0.0.0.0", "--port", "0")
    assert status == 1 and said.count("\n") == 1
    assert "no users" in said and "no TLS" in said and "--allow-insecure" in said


@pytest.mark.parametrize(
    ("arguments", "environment", "password"),
    [
        ((), None, "of-the-url"),
        ((), "", "of-the-url"),
        ((), "of-the-variable", "of-the-variable"),
        (("--password", "given"), "of-the-variable", "given"),
        (("--password", ""), "of-the-variable", ""),
    ],
)
def test_whose_password_counts(
    arguments: tuple[str, ...], environment: str | None, password: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command line's, else the variable's unless it is empty, else that of the URL."""
    monkeypatch.delenv("JMSISH_PASSWORD", raising=False)
    if environment is not None:
        monkeypatch.setenv("JMSISH_PASSWORD", environment)
    url = "amqp://alice:of-the-url@localhost"
    given = build_parser().parse_args(["doctor", url, *arguments])
    assert read_target(url, connection_options(given)).password == password
