"""`jmsish broker --check FILE`, and what a user may do by it."""

from __future__ import annotations

from pathlib import Path

import pytest

import jmsish
from jmsish.broker import scram_key
from jmsish.cli.main import main

from .conftest import Complaint, Run

VALID = """
[policy]
max_message_size = 5000
[users.alice]
password = "secret"
[vhosts."$default".groups.staff]
users = ["alice"]
remote_hosts = ["10.0.0.1-10.0.0.9"]
max_connections_per_user = 7
max_message_size = 100
max_senders = 3
max_receivers = 0
sources = ["${user}.*", "news"]
target_pattern = ["orders.#"]
may_bind = false
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "broker.toml"
    path.write_text(VALID)
    return path


def test_a_valid_configuration(run: Run, file: Path) -> None:
    assert run("broker", "--check", str(file)) == f"{file}: valid\n"


def test_all_that_is_wrong_is_told_a_line_each(file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file.write_text('[policy]\nmax_conections = 1\nauto_create = "True"\n[vhosts.a]\naliases = [""]\n')
    assert main(["broker", "--check", str(file), "--as", "alice"]) == 1
    captured = capfd.readouterr()
    lines = captured.err.splitlines()
    assert captured.out == "" and len(lines) == 3
    assert all(line.startswith(f"jmsish: {file}: ") for line in lines)
    assert "did you mean 'max_connections'?" in lines[0] and "[policy] auto_create" in lines[1]


def test_what_is_no_toml_or_no_file(complaint: Complaint, file: Path) -> None:
    assert complaint("broker", "--check", f"{file}.not")[0] == 1
    file.write_text("[policy")
    status, error = complaint("broker", "--check", str(file))
    assert status == 1 and str(file) in error


def test_what_a_user_may_do(run: Run, file: Path) -> None:
    said = run("broker", "--check", str(file), "--as", "alice", "--host", "10.0.0.5")
    head, *rows = said.splitlines()[2:]
    assert head == "alice may connect from 10.0.0.5, in the group staff of the virtual host $default"
    told = dict(row.strip().split("  ", 1) for row in rows)
    assert {name: value.strip() for name, value in told.items()} == {
        "max_connections": "65535 of the virtual host", "max_connections_per_user": "7",
        "max_connections_per_host": "65535", "max_message_size": "100 octets, else the connection is closed",
        "max_frame_size": "as the listener has it", "max_session_window": "as the listener has it",
        "max_sessions": "as the listener has it", "max_senders": "3", "max_receivers": "none",
        "receives from": "alice.*, news", "sends to": "orders.#", "allow_anonymous_sender": "no",
        "allow_dynamic_source": "no", "allow_user_id_proxy": "no", "may_create": "yes", "may_delete": "yes",
        "may_bind": "no", "may_freeze": "yes", "may_purge": "yes", "management node": "no",
        "policy": "may not change it",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("alice", "--host", "10.0.0.10"), "the group 'staff' of '$default' has no remote host '10.0.0.10'"),
        (("bob", "--host", "10.0.0.5"), "the user 'bob' is in no group of the virtual host '$default'"),
        (("alice",), "has no remote host '127.0.0.1'"),
    ],
)
def test_who_may_not_connect_and_why(run: Run, file: Path, arguments: tuple[str, ...], why: str) -> None:
    said = run("broker", "--check", str(file), "--as", *arguments)
    assert f"{arguments[0]} may not connect from" in said and why in said
    assert ("there is no [users.bob]" in said) is (arguments[0] == "bob")


def test_localhost_is_a_host_and_other_names_are_not_looked_up(run: Run, file: Path, complaint: Complaint) -> None:
    file.write_text('[vhosts."$default".groups.all]\nusers = ["*"]\nremote_hosts = ["localhost"]\n')
    said = run("broker", "--check", str(file), "--as", "joe", "--host", "localhost")
    assert "joe may connect from 127.0.0.1" in said
    status, error = complaint("broker", "--check", str(file), "--as", "joe", "--host", "laptop.example")
    assert status == 2 and "--host: 'laptop.example' is no address" in error


def test_a_mark_of_the_byte_order_is_no_part_of_the_configuration(run: Run, file: Path) -> None:
    """Some editors begin a file in UTF-8 with it."""
    file.write_bytes(b"\xef\xbb\xbf" + VALID.encode())
    assert run("broker", "--check", str(file)) == f"{file}: valid\n"
    assert jmsish.EmbeddedBroker(config=file).policy.settings["max_message_size"] == 5000


def test_the_virtual_host(run: Run, file: Path) -> None:
    file.write_text('[vhosts.shop.groups.all]\nusers = ["*"]\nremote_hosts = ["*"]\n')
    assert "may connect" in run("broker", "--check", str(file), "--as", "joe", "--vhost", "shop")
    said = run("broker", "--check", str(file), "--as", "joe")
    assert "joe may not connect from 127.0.0.1: there is no virtual host" in said


KEY = scram_key("SCRAM-SHA-256", "secret")


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("", "no [vhosts]: the virtual host '$default' is implied, open to all"),
        ('[vhosts."$default"]', "[vhosts.$default] has no groups: nobody may connect to it"),
        ('[vhosts."$default".groups.a]', "[vhosts.$default.groups.a] has no remote_hosts: nobody may connect by it"),
        ('[vhosts."$default"]\nallow_unknown_user = true', "allows unknown users and has no group '$default'"),
        ("[vhosts.shop]", "no virtual host is called '$default'"),
        (
            '[vhosts."$default".groups.a]\ntargets = ["orders.#"]',
            "targets has the name 'orders.#', in which '#' is no wildcard: is target_pattern meant?",
        ),
        (
            '[vhosts."$default".groups.a]\nsource_pattern = "joe*.#"',
            "[vhosts.$default.groups.a] source_pattern 'joe*.#' has the word 'joe*': only a whole word is a wildcard",
        ),
        (
            '[users.alice]\npassword = "x"\n[vhosts."$default".groups.a]\nusers = ["alcie"]',
            "[vhosts.$default.groups.a] has a user 'alcie' without a password: is 'alice' meant?",
        ),
        (
            f'[authentication]\nmechanisms = ["SCRAM-SHA-512"]\n[users.alice]\nscram_sha_256 = "{KEY}"',
            "[authentication] mechanisms has none that all users can use: nobody can log in over a socket",
        ),
    ],
)
def test_notes_say_what_is_valid_and_may_not_be_meant(run: Run, file: Path, text: str, note: str) -> None:
    file.write_text(text)
    assert note in run("broker", "--check", str(file))


def test_the_default_virtual_host_may_be_told_by_an_alias(run: Run, file: Path) -> None:
    file.write_text('[policy]\ndefault_vhost = "SHOP.example"\n[vhosts.shop]\naliases = ["*.example"]\n')
    assert "no virtual host is called" not in run("broker", "--check", str(file))


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ('[authentication]\nusers_file = "u.toml"', "users_file 'u.toml': No such file or directory"),
        ('[[listeners]]\ncertificate = "c.pem"', "[[listeners]] 1: certificate="),
        ('[[listeners]]\n[[listeners]]\nhost = "0.0.0.0"', "[[listeners]] 2: listening on 0.0.0.0:5672 is refused"),
    ],
)
def test_it_is_noted_what_would_keep_the_broker_from_starting(run: Run, file: Path, text: str, note: str) -> None:
    file.write_text(text)
    said = run("broker", "--check", str(file))
    assert f"{file}: valid" in said and "note: the broker would not start here: " in said and note in said


def test_the_users_of_the_file_are_known(run: Run, file: Path) -> None:
    file.write_text('[authentication]\nusers_file = "u.toml"\n')
    (file.parent / "u.toml").write_text('[alice]\npassword = "secret"\n')
    assert "there is no" not in run("broker", "--check", str(file), "--as", "alice")
    said = run("broker", "--check", str(file), "--as", "bob")
    assert "there is no [users.bob], nor one in 'u.toml'" in said and "secret" not in said


EVERYTHING = """
[policy]
max_message_size = 0
on_oversize = "connection"
max_connections = 65535
default_vhost = "$default"
transaction_timeout = 0
auto_create = true
[users.alice]
password = "secret"
[vhosts."$default"]
max_message_size = 100000
allow_unknown_user = true
[vhosts."$default".groups.staff]
users = ["alice"]
remote_hosts = ["*"]
max_message_size = 0
sources = ["*"]
targets = ["*"]
[queues.orders]
durable = true
max_delivery_attempts = 5
dead_letter = "orders.dead"
[exchanges.prices]
type = "topic"
[[bindings]]
exchange = "prices"
queue = "orders"
key = "eu.#"
[[listeners]]
host = "127.0.0.1"
port = 5672
role = "normal"
[[connectors]]
url = "amqp://127.0.0.1:5673"
role = "edge"
name = "uplink"
[[link_routes]]
prefix = "orders"
connector = "broker"
[addresses]
multicast = ["news"]
[router]
id = "EA1"
mode = "edge"
"""
"""The configuration that the interface of the project shows, as it stands there but for its comments."""


def test_the_whole_configuration_as_it_is_documented(run: Run, file: Path) -> None:
    file.write_text(EVERYTHING)
    said = run("broker", "--check", str(file), "--as", "alice")
    assert said.startswith(f"{file}: valid\n") and "alice may connect from 127.0.0.1, in the group staff" in said
    assert "the link route 'orders' goes to no connector yet: 'broker' is not among uplink" in said
    assert "in the group $default" in run("broker", "--check", str(file), "--as", "bob")


def test_a_link_route_where_no_connector_is_named(run: Run, file: Path) -> None:
    file.write_text('[router]\nid = "A"\nmode = "interior"\n[[link_routes]]\nprefix = "x"\nconnector = "y"\n')
    said = run("broker", "--check", str(file))
    assert "the link route 'x' goes to no connector yet: 'y' is not there, nor is another one\n" in said


def test_one_file_is_checked(complaint: Complaint, file: Path) -> None:
    status, error = complaint("broker", "--check", str(file), "--config", str(file))
    assert status == 2 and "--config is for serving" in error


def test_what_a_router_is_and_what_is_of_no_use_to_it_is_told(run: Run, file: Path) -> None:
    file.write_text('[router]\nid = "EA1"\nmode = "edge"\n[queues.orders]\n[exchanges.prices]\ntype = "topic"\n')
    said = run("broker", "--check", str(file))
    assert "note: the router 'EA1', edge, with doors for normal\n" in said
    assert "note: [queues] is of no use" in said and "note: [exchanges] is of no use" in said
    assert "this edge has no uplink" in said


@pytest.mark.parametrize("arguments", [("--as", "alice"), ("--vhost", "shop")])
def test_it_is_said_what_goes_with_what(complaint: Complaint, arguments: tuple[str, ...]) -> None:
    status, error = complaint("broker", *arguments)
    assert status == 2 and "--check FILE" in error


@pytest.mark.parametrize(
    ("user", "host", "words"),
    [("alice", "10.1.2.3", "sends to                  orders, jmsish.temporary.*"),
     ("carol", "127.0.0.1", "may change it"), ("alice", "11.0.0.1", "alice may not connect"),
     ("bob", "127.0.0.1", "is in no group")],
)  # fmt: skip
def test_the_example_of_a_policy(run: Run, user: str, host: str, words: str) -> None:
    path = Path(__file__).resolve().parents[2] / "examples/data/policy.toml"
    said = run("broker", "--check", str(path), "--as", user, "--host", host)
    assert said.startswith(f"{path}: valid\n\n") and words in said
