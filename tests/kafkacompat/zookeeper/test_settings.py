"""Parsing of zookeeper.connect."""

from __future__ import annotations

import pytest

from kafkacompat.zookeeper.client import ZooKeeperError
from kafkacompat.zookeeper.settings import parse_connect


@pytest.mark.parametrize(
    ("connect", "servers", "chroot"),
    [
        ("zk", "zk:2181", ""),
        (" zk:2182/ ", "zk:2182", ""),
        ("a:1, b,[::1]:65535/kafka/prod", "a:1,b:2181,[::1]:65535", "/kafka/prod"),
        ("[fe80::1]", "[fe80::1]:2181", ""),
    ],
)
def test_servers_and_chroot(connect: str, servers: str, chroot: str) -> None:
    ensemble = parse_connect(connect)
    assert (ensemble.format_servers(), ensemble.chroot) == (servers, chroot)


@pytest.mark.parametrize(
    ("connect", "reason"),
    [
        ("", "names no server: a host is missing"),
        ("a:1,,b:2", "names no server: a host is missing"),
        ("a:port", "'port' is not a port"),
        ("a:70000/x", "'70000' is not a port"),
        ("a:1/x,b:1/x", "has a server after the chroot; name the chroot once"),
        ("a:1/x/", "the chroot '/x/' is not the path of a node"),
        ("a:1//x", "the chroot '//x' is not the path of a node"),
        ("a:1/../x", "the chroot '/../x' is not the path of a node"),
    ],
)
def test_a_value_that_cannot_be_used_is_named_in_one_sentence(connect: str, reason: str) -> None:
    with pytest.raises(ZooKeeperError) as problem:
        parse_connect(connect)
    assert str(problem.value).startswith(f"zookeeper.connect={connect}") and reason in str(problem.value)
