"""The contract of every metadata store; compat_tests run it on a real ZooKeeper."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from twisted.internet.defer import Deferred

from kafkacompat.metadata.store import ABSENT, ConflictError, MetadataStore, StoreChange, StoreEntry

CLUSTER = "/cluster/id"
CONFIG = "/config/topics/a"
TOPIC = "/brokers/topics/a"
STATES = [f"{TOPIC}/partitions/{index}/state" for index in range(3)]


class Subject(NamedTuple):
    """A store, and how to get the result of a Deferred of its."""

    store: MetadataStore
    run: Callable[[Deferred[Any]], Any]

    def change(self, *changes: tuple[str, int, bytes | None]) -> None:
        self.run(self.store.compare_and_set([StoreChange(*change) for change in changes]))


class StoreContract:
    """The tests; a module that runs them has a fixture ``subject``."""

    def test_versions_start_at_0_and_count_changes(self, subject: Subject) -> None:
        subject.change((CLUSTER, ABSENT, b"1"), (CONFIG, ABSENT, b"2"))
        subject.change((CLUSTER, 0, b"3"))
        entries = {CLUSTER: StoreEntry(b"3", 1), CONFIG: StoreEntry(b"2", 0)}
        assert subject.run(subject.store.load()) == entries
        assert subject.run(subject.store.read([CONFIG, TOPIC, CLUSTER])) == entries

    def test_a_store_begins_empty_and_takes_an_empty_change(self, subject: Subject) -> None:
        subject.change()
        assert subject.run(subject.store.load()) == {}
        assert subject.run(subject.store.read([])) == {}
        assert [*subject.run(subject.store.keys("/consumers/"))] == []

    def test_offsets_are_left_out_until_they_are_asked_for(self, subject: Subject) -> None:
        keys = ["/consumers/g/offsets/t/0", "/consumers/g/offsets/t/1", "/consumers/h/offsets/t/0"]
        subject.change(*((key, ABSENT, b"1") for key in [CONFIG, *keys]))
        assert [*subject.run(subject.store.load())] == [CONFIG]
        assert sorted(subject.run(subject.store.keys("/consumers/"))) == keys
        assert subject.run(subject.store.read(keys[1:2])) == {keys[1]: StoreEntry(b"1", 0)}
        subject.change((keys[0], 0, b"2"), (keys[1], 0, None))
        assert sorted(subject.run(subject.store.keys("/consumers/"))) == [keys[0], keys[2]]

    def test_all_kinds_of_keys_are_loaded(self, subject: Subject) -> None:
        keys = [
            CLUSTER,
            "/latest_producer_id_block",
            TOPIC,
            *STATES,
            "/brokers/topics/b",
            *(f"/config/{kind}/<default>" for kind in ("topics", "brokers", "ips", "groups", "client-metrics")),
            "/config/users/u",
            "/config/users/u/clients/<default>",
            "/config/users/<default>/clients/c",
            "/config/clients/c%2Fd",
        ]
        subject.change(*((key, ABSENT, key.encode()) for key in keys))
        assert subject.run(subject.store.load()) == {key: StoreEntry(key.encode(), 0) for key in keys}

    def test_a_deleted_key_is_absent_and_restarts_its_version(self, subject: Subject) -> None:
        subject.change((CONFIG, ABSENT, b"1"))
        subject.change((CONFIG, 0, None))
        assert subject.run(subject.store.read([CONFIG])) == {}
        subject.change((CONFIG, ABSENT, b"2"))
        assert subject.run(subject.store.read([CONFIG])) == {CONFIG: StoreEntry(b"2", 0)}

    @pytest.mark.parametrize("expected", [ABSENT, 1, 7])
    @pytest.mark.parametrize("value", [b"2", None])
    def test_a_conflict_changes_nothing(self, subject: Subject, expected: int, value: bytes | None) -> None:
        subject.change((CONFIG, ABSENT, b"1"))
        with pytest.raises(ConflictError):
            subject.change((TOPIC, ABSENT, b"x"), (CONFIG, expected, value))
        assert subject.run(subject.store.load()) == {CONFIG: StoreEntry(b"1", 0)}
        subject.change((CONFIG, 0, b"2"))

    @pytest.mark.parametrize("value", [b"1", None])
    def test_changing_an_absent_key_is_a_conflict(self, subject: Subject, value: bytes | None) -> None:
        with pytest.raises(ConflictError):
            subject.change((CONFIG, 0, value))
        subject.change((CONFIG, ABSENT, None))
        assert subject.run(subject.store.load()) == {}

    def test_a_topic_is_created_grows_and_is_deleted(self, subject: Subject) -> None:
        subject.change(*((key, ABSENT, b"1") for key in [CLUSTER, TOPIC, *STATES[:2]]))
        subject.change((TOPIC, 0, b"2"), (STATES[2], ABSENT, b"1"))
        subject.change((STATES[1], 0, b"2"))
        versions = {TOPIC: 1, STATES[0]: 0, STATES[1]: 1, STATES[2]: 0}
        entries = subject.run(subject.store.load())
        assert {key: entry.version for key, entry in entries.items() if key != CLUSTER} == versions
        subject.change(*((key, version, None) for key, version in versions.items()))
        assert [*subject.run(subject.store.load())] == [CLUSTER]
        subject.change(*((key, ABSENT, b"3") for key in [TOPIC, STATES[0]]))
        assert subject.run(subject.store.read([TOPIC, *STATES])) == {
            TOPIC: StoreEntry(b"3", 0),
            STATES[0]: StoreEntry(b"3", 0),
        }

    def test_keys_above_others_come_and_go_by_themselves(self, subject: Subject) -> None:
        above, below = "/config/users/u", "/config/users/u/clients/c"
        subject.change((below, ABSENT, b"1"))
        subject.change((above, ABSENT, b"2"))
        entries = subject.run(subject.store.load())
        assert {key: entry.value for key, entry in entries.items()} == {above: b"2", below: b"1"}
        subject.change((above, entries[above].version, None))
        assert subject.run(subject.store.load()) == {below: StoreEntry(b"1", 0)}
        subject.change((above, ABSENT, b"3"), (below, 0, None))
        version = subject.run(subject.store.read([above]))[above].version
        subject.change((above, version, None), (below, ABSENT, b"4"))
        assert subject.run(subject.store.load()) == {below: StoreEntry(b"4", 0)}
