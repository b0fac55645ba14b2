"""Metadata files whose keys were written before names were encoded as in ZooKeeper."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest

from kafkacompat.metadata.client_entities import format_client_key, make_entity
from kafkacompat.metadata.old_keys import renew_key
from kafkacompat.metadata.sqlite_store import SqliteStore
from kafkacompat.metadata.store import ABSENT, StoreChange, StoreEntry
from kafkacompat.metadata.znodes.consumers import format_offset_path
from tests.fakes.disk import ImmediateDisk
from tests.kafkacompat.metadata.deferreds import outcome

NAMES = [
    "plain",
    "a b",
    "a:b",
    "a~b",
    "50%",
    "%41",
    "a+b",
    "a/b",
    "grüße",
    "☃",
    "😀",
    ".",
    "..",
    "x.",
    "<default>",
    "a\nb",
    "%",
]
GROUPS = [*NAMES, ""]


@pytest.mark.parametrize("group", GROUPS)
def test_the_offset_of_a_group_gets_the_key_under_which_it_is_read(group: str) -> None:
    new = format_offset_path(group, "t", 0)
    assert renew_key(f"/consumers/{quote(group, safe='')}/offsets/t/0") == new
    assert renew_key(new) == new


@pytest.mark.parametrize("name", NAMES)
def test_the_config_of_an_entity_gets_the_key_under_which_it_is_changed(name: str) -> None:
    new = format_client_key(make_entity([("user", name), ("client-id", name)]))
    old = quote(name, safe="")
    assert renew_key(f"/config/users/{old}/clients/{old}") == new
    assert renew_key(new) == new


def test_the_defaults_keep_their_keys() -> None:
    for key in ("/config/brokers/<default>", "/config/users/<default>/clients/<default>"):
        assert renew_key(key) == key


def test_a_file_with_old_keys_is_renamed_when_it_is_opened(tmp_path: Path) -> None:
    values = {
        "/brokers/topics/a~b": b"not renamed",
        "/config/users/a~b": b"user",
        "/consumers/a%20b/offsets/t/0": b"5",
        "/consumers/./offsets/t/0": b"6",
        "/consumers//offsets/t/0": b"7",
        "/consumers/c%20d/offsets/t/0": b"8",
        "/consumers/c d/offsets/t/0": b"9",
    }
    store = SqliteStore(str(tmp_path), ImmediateDisk())
    outcome(store.compare_and_set([StoreChange(key, ABSENT, value) for key, value in values.items()]))
    outcome(store.close())
    renamed = {
        "/brokers/topics/a~b": b"not renamed",
        "/config/users/a%7Eb": b"user",
        "/consumers/a b/offsets/t/0": b"5",
        "/consumers/%2E/offsets/t/0": b"6",
        "/consumers/%/offsets/t/0": b"7",
        "/consumers/c d/offsets/t/0": b"9",
    }
    for _ in range(2):
        store = SqliteStore(str(tmp_path), ImmediateDisk())
        keys = [*outcome(store.load()), *outcome(store.keys("/consumers/"))]
        assert sorted(keys) == sorted(renamed)
        assert outcome(store.read(keys)) == {key: StoreEntry(value, 0) for key, value in renamed.items()}
        outcome(store.close())
