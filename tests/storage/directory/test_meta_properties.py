"""meta.properties: Java's format, two versions, and rejected files."""

from __future__ import annotations

from typing import Any

import pytest

from kafkacompat.storage.directory.meta_properties import read_meta_properties
from kafkacompat.storage.files.checkpoints import replace_file
from tests.storage.support import DIRECTORY_ID, Store, catch_refusal, take_directory


@pytest.mark.parametrize(
    ("text", "properties"),
    [
        (b"broker.id=1\n", (1, None, None, 0)),
        (b"#Tue\nversion=0\nbroker.id=1\ncluster.id=C\n", (1, "C", None, 0)),
        (b"version=0\n", (None, None, None, 0)),
        (b"version=1\nnode.id=1\ncluster.id = C\\=\n", (1, "C=", None, 1)),
        (b"version=1\nnode.id=1\ncluster.id=C\ndirectory.id=ZGVmZ2hpamtsbW5vcHFycw\n", (1, "C", DIRECTORY_ID, 1)),
    ],
)
def test_both_versions_of_meta_properties_are_read(store: Store, text: bytes, properties: tuple[Any, ...]) -> None:
    replace_file(store.files, store.path("meta.properties"), text)
    assert read_meta_properties(store.files, store.root) == properties


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"version=2\nnode.id=1\n",
        b"version=1\nnode.id=x\n",
        b"version=1\nnode.id=x\ncluster.id=C\n",
        b"version=1\nnode.id=1\n",
        b"version=1\ncluster.id=C\n",
        b"directory.id=AAAA\n",
        b"node.id=1\ncluster.id=C\n",
        b"a shopping list\nmilk=2\n",
        b"\x7fELF\x02\x01\n\xff\xfe",
    ],
)
def test_meta_properties_that_make_no_sense_are_refused_and_stay(store: Store, text: bytes) -> None:
    store.files.make_directory(store.path("data"))
    path = store.path("data", "meta.properties")
    replace_file(store.files, path, text)
    assert "meta.properties" in catch_refusal(store)
    assert store.files.read(path) == text


def test_a_folder_in_the_place_of_meta_properties_is_refused(store: Store) -> None:
    store.files.make_directory(store.path("data", "meta.properties"))
    assert "meta.properties" in catch_refusal(store)


@pytest.mark.parametrize("cluster", [None, "C"])
def test_version_0_stays_version_0(store: Store, cluster: str | None) -> None:
    store.files.make_directory(store.path("data"))
    path = store.path("data", "meta.properties")
    given = b"version=0\n" + (f"cluster.id={cluster}\n".encode() if cluster else b"")
    replace_file(store.files, path, given)
    take_directory(store).release()
    assert read_meta_properties(store.files, store.path("data")) == (1, cluster, DIRECTORY_ID, 0)
    assert b"broker.id=1\n" in store.files.read(path)
