"""The section `[vhosts]` of a configuration: what is taken, what is refused, and how it is told."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jmsish.broker import BrokerConfig, ConfigurationError
from jmsish.broker.config.exchanges import BINDING_KEYS, EXCHANGE_KEYS
from jmsish.broker.config.limits import GLOBAL_KEYS
from jmsish.broker.config.users import USER_KEYS
from jmsish.broker.config.vhosts import GROUP_KEYS, VHOST_KEYS
from jmsish.broker.config.whole import SECTIONS
from jmsish.broker.policy import SETTING_NAMES
from jmsish.broker.vhosts import GroupSettings, VhostSettings
from tests.broker.policies import OPEN

FULL: dict[str, Any] = {
    "aliases": ["shop.example.com"], "max_message_size": 100_000, "max_connections": 10, "max_connections_per_user": 2,
    "max_connections_per_host": 3, "allow_unknown_user": True,
    "groups": {
        "staff": {
            "users": ["alice"], "remote_hosts": ["10.0.0.1-10.0.0.9", "::1"], "max_message_size": 0,
            "max_connections_per_user": 5, "max_connections_per_host": 6, "max_frame_size": 4096, "max_sessions": 7,
            "max_session_window": 8192, "max_senders": 0, "max_receivers": 9, "sources": ["a", "${user}.*"],
            "target_pattern": ["${user}.#"], "allow_anonymous_sender": True, "allow_dynamic_source": True,
            "allow_user_id_proxy": True, "may_create": False, "may_delete": False, "may_bind": False,
            "may_freeze": False, "may_purge": False, "may_manage": False,
        },
        "$default": {},
    },
}  # fmt: skip


def test_a_full_one_is_read_and_told_as_it_was_written() -> None:
    vhost = BrokerConfig.from_mapping({"vhosts": {"shop": FULL}}).vhosts["shop"]
    groups = {name: each.described() for name, each in vhost.groups.items()}
    assert {**vhost.described(), "groups": {**groups, "$default": {}}} == FULL
    assert vhost.groups["$default"] == GroupSettings()


def test_the_defaults() -> None:
    vhost = BrokerConfig.from_mapping({"vhosts": {"shop": {"groups": {"staff": {}}}}}).vhosts["shop"]
    assert vhost == VhostSettings(groups={"staff": GroupSettings()})
    assert (vhost.max_connections, vhost.max_connections_per_user, vhost.max_connections_per_host) == (65535,) * 3
    staff = vhost.groups["staff"]
    assert (staff.max_senders, staff.max_receivers, staff.max_frame_size) == (2147483647, 2147483647, 0)
    assert not staff.sources.decision("joe")("a") and "127.0.0.1" not in staff.remote_hosts
    assert not (staff.allow_anonymous_sender or staff.allow_dynamic_source or staff.allow_user_id_proxy)


def vhost(**settings: Any) -> dict[str, Any]:
    return {"vhosts": {"shop": settings}}


def staff(**settings: Any) -> dict[str, Any]:
    return vhost(groups={"staff": settings})


AT = "[vhosts.shop.groups.staff]"
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"vhosts": []}, "[vhosts] must be a table, not list"),
    ({"vhosts": {"shop": 5}}, "[vhosts.shop] must be a table, not int"),
    (vhost(groups=[]), "[vhosts.shop.groups] must be a table, not list"),
    (vhost(groups={"staff": 5}), f"{AT} must be a table, not int"),
    (vhost(max_conections=1), "unknown key 'max_conections' in [vhosts.shop]: did you mean 'max_connections'?"),
    (vhost(max_connections=-1), "[vhosts.shop] max_connections must be a whole number from 0"),
    (vhost(max_connections=True), "[vhosts.shop] max_connections must be a whole number from 0"),
    (vhost(max_message_size=-1), "[vhosts.shop] max_message_size must be a whole number from 0"),
    (vhost(max_message_size=1 << 64), "[vhosts.shop] max_message_size must be a whole number from 0"),
    (vhost(allow_unknown_user="True"), "[vhosts.shop] allow_unknown_user must be true or false, not 'True'"),
    (vhost(allow_unknown_user=1), "[vhosts.shop] allow_unknown_user must be true or false, not 1"),
    (vhost(aliases="x"), "[vhosts.shop] aliases must be a list of strings, not 'x'"),
    (vhost(aliases=[5]), "[vhosts.shop] aliases must be a list of strings, and has 5"),
    (vhost(aliases=[""]), "[vhosts.shop] aliases: '' is blank"),
    (vhost(aliases=["shop"]), "is a name of the virtual host 'shop' already"),
    ({"vhosts": {"shop": {}, "Shop": {}}}, "the virtual host 'Shop' is a name of the virtual host 'shop' already"),
    ({"vhosts": {"a": {"aliases": ["x"]}, "b": {"aliases": ["x"]}}}, "[vhosts.b] aliases: 'x' is a name"),
    ({"vhosts": {"*.#": {}, "#.*": {}}}, "the virtual host '#.*' conflicts with the virtual host '*.#'"),
    (staff(user=["joe"]), f"unknown key 'user' in {AT}: did you mean 'users'?"),
    (staff(users="joe"), f"{AT} users must be a list of strings, not 'joe'"),
    (vhost(groups={"a": {"users": ["joe"]}, "b": {"users": ["joe"]}}),
     "[vhosts.shop.groups.b] users: the user 'joe' is in one group only, and was put into 'a' and 'b'"),
    (vhost(groups={"a": {"users": ["*"]}, "b": {"users": ["*"]}}),
     "[vhosts.shop.groups.b] users: everybody ('*') is in one group only, and was put into 'a' and 'b'"),
    (staff(remote_hosts=["10.0.0"]), f"{AT} remote_hosts: '10.0.0' is no remote host"),
    (staff(remote_hosts=["10.0.0.9-10.0.0.1"]), "a range begins with the lower address"),
    (staff(remote_hosts=["10.0.0.9-::1"]), "a range is of IPv4 or of IPv6"),
    (staff(max_frame_size=5), f"{AT} max_frame_size must be 0, or 512 octets at least, not 5"),
    (staff(max_frame_size=1 << 32), f"{AT} max_frame_size must be a whole number from 0 to 4294967295"),
    (staff(max_sessions=65537), f"{AT} max_sessions must be a whole number from 0 to 65536"),
    (staff(max_session_window=-1), f"{AT} max_session_window must be"),
    (staff(max_senders=-1), f"{AT} max_senders must be"),
    (staff(max_receivers="1"), f"{AT} max_receivers must be"),
    (staff(max_message_size=1.5), f"{AT} max_message_size must be"),
    (staff(max_connections_per_user=-1), f"{AT} max_connections_per_user must be"),
    (staff(max_connections=1), f"unknown key 'max_connections' in {AT}"),
    (staff(sources="a"), f"{AT} sources must be a list of strings, not 'a'"),
    (staff(source_pattern=5), f"{AT} source_pattern must be a string, or a list of strings, not 5"),
    (staff(source_pattern="x${user}"), f"{AT} source_pattern: 'x${{user}}': "),
    ({"exchanges": {"x": {"type": "topic"}}, "bindings": [{"exchange": "x", "queue": "q"}]},
     "[[bindings]] 1: there is no queue 'q' in the configuration; known: none"),
    (staff(sources=["a"], source_pattern=["b"]), f"{AT}: sources and source_pattern are two forms of the same"),
    (staff(targets=[], target_pattern=[]), f"{AT}: targets and target_pattern are two forms of the same"),
    (staff(sources=["a*b"]), f"{AT} sources: 'a*b': '*' is allowed at the end only"),
    (staff(targets=["${user}.${user}"]), f"{AT} targets: '${{user}}.${{user}}': ${{user}} is allowed once"),
    (staff(targets=[""]), f"{AT} targets: an address is not empty"),
    (staff(target_pattern=["a.${user}.b"]), f"{AT} target_pattern: 'a.${{user}}.b': ${{user}} is the whole first"),
    (staff(source_pattern=["x${user}"]), f"{AT} source_pattern: 'x${{user}}': ${{user}} is the whole first"),
    *((staff(**{right: "True"}), f"{AT} {right} must be true or false, not 'True'") for right in (
        "allow_anonymous_sender", "allow_dynamic_source", "allow_user_id_proxy", "may_create", "may_delete", "may_bind",
        "may_freeze", "may_purge", "may_manage")),
    ({"policy": {"max_queues": 1}, "queues": {"a": {}, "b": {}}}, "[policy] max_queues is 1, and [queues] has 2"),
    ({"policy": {"max_queues": -1}}, "[policy] max_queues must be a whole number, 0 or more, not -1"),
    ({"policy": {"max_queues": 1 << 63}}, "[policy] max_queues must be a whole number from 0 to 9223372036854775807"),
    ({"policy": {"default_vhost": ""}}, "[policy] default_vhost must be the name of a virtual host, not ''"),
    *(({"policy": {"transaction_timeout": wrong}}, "[policy] transaction_timeout must be seconds, 0 or more")
      for wrong in (float("inf"), float("nan"), 10**400, -1, True, "5")),
    ({"limits": {"idle_timeout": float("inf")}}, "[limits] idle_timeout must be seconds, 0 or more, not inf"),
    ({"queues": {"a": {"max_messages": 1 << 63}}}, "[queues.a]: max_messages must be 9223372036854775807 at most"),
    ({"queues": {"a": {"redelivery_delay": 10**400}}}, "[queues.a]: redelivery_delay must be seconds, 0 or more"),
    ({"vhosts": {"": {}}}, "[vhosts]: the virtual host '' is blank"),
    ({"vhosts": {"a\ud800": {}}}, "[vhosts]: a virtual host cannot be called"),
    (vhost(groups={"": {}}), "[vhosts.shop]: a group needs a name, not ''"),
    (staff(users=[""]), f"{AT} users has one without a name"),
    ({"users": {"": {"password": "x"}}}, "[users]: a user needs a name, not ''"),
    (staff(sources=["${USER}.*"]), f"{AT} sources: '${{USER}}.*': there is no ${{USER}}, only ${{user}}"),
    (staff(target_pattern=["${usr}.#"]), f"{AT} target_pattern: '${{usr}}.#': there is no ${{usr}}, only ${{user}}"),
]  # fmt: skip


@pytest.mark.parametrize(("config", "words"), WRONG)
def test_what_is_wrong_is_named_by_its_place(config: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        BrokerConfig.from_mapping(config)
    (error,) = raised.value.errors
    assert words in error


def test_one_pattern_may_stand_by_itself() -> None:
    read = BrokerConfig.from_mapping(staff(source_pattern="a.#", target_pattern=["a.#"]))
    group = read.vhosts["shop"].groups["staff"]
    assert group.sources == group.targets and group.sources.patterns == ("a.#",)


def test_all_of_it_is_told_at_once() -> None:
    config = {"vhosts": {"shop": {"max_connections": -1, "groups": {"a": {"users": ["joe"], "max_senders": -1},
              "b": {"users": ["joe"], "source": []}}}, "*.x": {"aliases": ["shop"]}}}  # fmt: skip
    with pytest.raises(ConfigurationError) as raised:
        BrokerConfig.from_mapping(config)
    assert len(raised.value.errors) == 5


def test_an_empty_section_is_as_good_as_none() -> None:
    assert BrokerConfig.from_mapping({"vhosts": {}}) == BrokerConfig()
    assert OPEN["sources"] == ["*"]


SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 600), st.just(1 << 70), st.floats(allow_nan=True),
    st.sampled_from(["", "*", "a", "10.0.0.1", "${user}", "topic", "True", "link", "q", "x"]), st.binary(max_size=2),
)  # fmt: skip
KEYS = st.sampled_from([
    *VHOST_KEYS, *GROUP_KEYS, *GLOBAL_KEYS, *SECTIONS, *SETTING_NAMES, *EXCHANGE_KEYS, *BINDING_KEYS, *USER_KEYS,
    "host", "port", "role", "a", "$default", "*.#", "",
])  # fmt: skip
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS | st.integers(), inner, max_size=4)),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(SECTIONS) | KEYS, VALUES, max_size=4))
@example({"bindings": [{"exchange": [], "queue": {}, "kind": []}]})
@example({"exchanges": {"x": {"type": []}}, "bindings": [{"exchange": "x", "queue": "q"}]})
@example({"policy": {"on_oversize": [], "default_vhost": {}}})
@example({"vhosts": {"a": {"groups": {"b": {"sources": [[]], "users": [{}]}}}}})
def test_whatever_a_configuration_is_it_is_taken_or_told_what_is_wrong(config: dict[Any, Any]) -> None:
    try:
        BrokerConfig.from_mapping(config)
    except ConfigurationError as error:
        assert error.errors and all(isinstance(sentence, str) and sentence for sentence in error.errors)
