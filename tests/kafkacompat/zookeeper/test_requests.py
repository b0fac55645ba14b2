"""Paths below a chroot, and sizes."""

from __future__ import annotations

import pytest

from kafkacompat.zookeeper.client import Check, Create, SetData, ZooKeeperError
from kafkacompat.zookeeper.requests import MAX_REQUEST_BYTES, Chroot, check_size, parent_of, size_of


@pytest.mark.parametrize(
    ("chroot", "path", "absolute"),
    [("", "/", "/"), ("", "/a/b", "/a/b"), ("/", "/a", "/a"), ("/kafka", "/", "/kafka"), ("/k/l", "/a", "/k/l/a")],
)
def test_paths_go_to_the_chroot_and_back(chroot: str, path: str, absolute: str) -> None:
    assert Chroot(chroot).absolute(path) == absolute
    assert Chroot(chroot).relative(absolute) == path
    assert Chroot(chroot).absolute_operation(Check(path, 3)) == Check(absolute, 3)


def test_parents() -> None:
    assert [parent_of(path) for path in ("/", "/a", "/a/b/c")] == ["/", "/", "/a/b"]


def test_a_request_is_counted_with_its_headers() -> None:
    value = bytes(MAX_REQUEST_BYTES - size_of(Create("/ä", b"")))
    check_size([Create("/ä", value)])
    with pytest.raises(ZooKeeperError, match=r"^/ä: a request of 1000001 bytes is too large"):
        check_size([SetData("/ä", value + b"x")])
    with pytest.raises(ZooKeeperError, match="2 operations: a request of"):
        check_size([Create("/ä", value), Check("/b", 0)])
