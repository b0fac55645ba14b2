"""The ledger writes over what it has read, also over what a newer release wrote."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from twisted.internet.defer import Deferred

from kafkacompat.config.resources import ResourceType
from kafkacompat.metadata.draft import MetadataDraft
from kafkacompat.metadata.ledger import MetadataLedger
from kafkacompat.metadata.store import StoreEntry, StoreError
from kafkacompat.metadata.store_changes import StoreForm
from tests.fakes.memory_store import MemoryStore
from tests.kafkacompat.metadata.deferreds import outcome

TOPIC = "/brokers/topics/t"
STATE = f"{TOPIC}/partitions/0/state"
CONFIG = "/config/topics/t"
PRODUCER_IDS = "/latest_producer_id_block"
VALUES = {
    TOPIC: b'{"version":3,"topic_id":"AAECAwQFBgcICQoLDA0ODw","partitions":{"0":[1]},"tier":1}',
    STATE: b'{"version":2,"controller_epoch":4,"leader":1,"leader_epoch":0,"isr":[1],"elr":[]}',
    CONFIG: b'{"version":1,"config":{"a":"1"},"by":"x"}',
    PRODUCER_IDS: b'{"version":1,"broker":1,"block_start":"0","block_end":"999","cell":2}',
}


def make_ledger(store: MemoryStore, form: StoreForm) -> MetadataLedger:
    ledger = MetadataLedger(store, lambda image: image, form)
    outcome(Deferred.fromCoroutine(ledger.load()))
    return ledger


def change_leader(draft: MetadataDraft) -> None:
    topic = draft.topics["t"]
    (partition,) = topic.partitions
    partition = partition._replace(leader_epoch=partition.leader_epoch + 1)
    draft.put_topic(topic._replace(partitions=(partition,)))
    draft.put_config((ResourceType.TOPIC, "t"), {"a": f"epoch {partition.leader_epoch}"})


def test_unknown_fields_survive_every_change() -> None:
    store = MemoryStore()
    store.entries = {key: StoreEntry(value, 5) for key, value in VALUES.items()}
    ledger = make_ledger(store, StoreForm(controller_epoch=9))
    for _ in range(2):
        outcome(Deferred.fromCoroutine(ledger.commit(change_leader)))
    assert json.loads(store.entries[STATE].value) == {
        "version": 2,
        "controller_epoch": 9,
        "leader": 1,
        "leader_epoch": 2,
        "isr": [1],
        "elr": [],
    }
    assert json.loads(store.entries[CONFIG].value) == {"version": 1, "config": {"a": "epoch 2"}, "by": "x"}
    assert store.entries[TOPIC] == StoreEntry(VALUES[TOPIC], 5)
    assert [entry.version for entry in (store.entries[STATE], store.entries[CONFIG])] == [7, 7]


def test_a_topic_made_again_begins_without_old_fields() -> None:
    store = MemoryStore()
    store.entries = {key: StoreEntry(value, 5) for key, value in VALUES.items()}
    ledger = make_ledger(store, StoreForm())
    topic = ledger.image.topics["t"]
    outcome(Deferred.fromCoroutine(ledger.commit(lambda draft: draft.remove_topic("t"))))
    outcome(Deferred.fromCoroutine(ledger.commit(lambda draft: draft.put_topic(topic))))
    assert "tier" not in json.loads(store.entries[TOPIC].value)
    assert store.entries[TOPIC].version == 0


def test_producer_ids_begin_in_the_empty_znode_of_a_new_cluster() -> None:
    store = MemoryStore()
    store.entries[PRODUCER_IDS] = StoreEntry(b"", 0)
    ledger = make_ledger(store, StoreForm())
    blocks = [outcome(Deferred.fromCoroutine(ledger.allocate_producer_ids(3))) for _ in range(2)]
    assert blocks == [range(1000), range(1000, 2000)]
    assert store.entries[PRODUCER_IDS].version == 2


def test_a_block_of_producer_ids_keeps_unknown_fields() -> None:
    store = MemoryStore()
    store.entries[PRODUCER_IDS] = StoreEntry(VALUES[PRODUCER_IDS], 0)
    outcome(Deferred.fromCoroutine(make_ledger(store, StoreForm()).allocate_producer_ids(3)))
    assert json.loads(store.entries[PRODUCER_IDS].value) == {
        "version": 1,
        "broker": 3,
        "block_start": "1000",
        "block_end": "1999",
        "cell": 2,
    }


# What others have changed


class SharedStore:
    """A store that others change too, and a ledger over it."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.store.entries = {key: StoreEntry(value, 5) for key, value in VALUES.items()}
        self.ledger = make_ledger(self.store, StoreForm(controller_epoch=9))

    def write(self, key: str, value: bytes) -> None:
        before = self.store.entries.get(key)
        self.store.entries[key] = StoreEntry(value, 0 if before is None else before.version + 1)

    def run(self, work: Coroutine[Deferred[Any], Any, Any]) -> None:
        outcome(Deferred.fromCoroutine(work))

    def commit_once(self, plan: Callable[[MetadataDraft], None]) -> None:
        """Commit a plan, which the store must accept at once."""
        self.store.writes.clear()
        self.run(self.ledger.commit(plan))
        assert len(self.store.writes) == 1


@pytest.fixture
def shared() -> SharedStore:
    return SharedStore()


def test_a_topic_that_others_have_written_is_read_again_by_itself(shared: SharedStore) -> None:
    grown = VALUES[TOPIC].replace(b'{"0":[1]}', b'{"0":[1],"1":[2]}')
    shared.write(TOPIC, grown)
    shared.write(STATE, VALUES[STATE].replace(b'"leader_epoch":0', b'"leader_epoch":7'))
    assert shared.ledger.knows_version(TOPIC, 5) and not shared.ledger.knows_version(TOPIC, 6)
    shared.run(shared.ledger.refresh_topics(["t", "unknown"]))
    assert shared.ledger.knows_version(TOPIC, 6)
    first, second = shared.ledger.image.topics["t"].partitions
    assert (first.leader_epoch, first.partition_epoch, second.has_state) == (7, 6, False)
    assert shared.ledger.image.topics_by_id.keys() == {bytes(range(16))}

    def lead_second(draft: MetadataDraft) -> None:
        draft.put_partitions("t", [second._replace(leader=2, leader_epoch=0, in_sync_replicas=(2,))])

    shared.commit_once(lead_second)
    assert shared.store.entries[f"{TOPIC}/partitions/1/state"].version == 0
    assert shared.store.entries[TOPIC].value == grown


def test_a_topic_that_others_have_removed_is_gone(shared: SharedStore) -> None:
    del shared.store.entries[TOPIC], shared.store.entries[STATE]
    shared.run(shared.ledger.refresh_topics(["t"]))
    assert not shared.ledger.image.topics
    assert not shared.ledger.image.topics_by_id


def test_the_state_of_a_single_partition_is_read_again(shared: SharedStore) -> None:
    shared.write(STATE, VALUES[STATE].replace(b'"leader_epoch":0,"isr":[1]', b'"leader_epoch":3,"isr":[1,2]'))
    shared.run(shared.ledger.refresh_states([("t", 0), ("t", 1), ("unknown", 0)]))
    (partition,) = shared.ledger.image.topics["t"].partitions
    assert (partition.leader_epoch, partition.in_sync_replicas, partition.partition_epoch) == (3, (1, 2), 6)
    shared.commit_once(change_leader)
    assert json.loads(shared.store.entries[STATE].value)["elr"] == []


def test_configurations_that_others_have_written_are_read_again(shared: SharedStore) -> None:
    client = "/config/clients/c"
    shared.write(CONFIG, b'{"version":1,"config":{"a":"2"},"by":"y"}')
    shared.write(client, b'{"version":1,"config":{"producer_byte_rate":"10"}}')
    shared.run(shared.ledger.refresh_configs([CONFIG, client]))
    assert shared.ledger.image.configs == {(ResourceType.TOPIC, "t"): {"a": "2"}}
    (config,) = shared.ledger.image.clients.values()
    assert config.quotas == {"producer_byte_rate": 10.0}
    shared.commit_once(lambda draft: draft.put_config((ResourceType.TOPIC, "t"), {"a": "3"}))
    assert json.loads(shared.store.entries[CONFIG].value) == {"version": 1, "config": {"a": "3"}, "by": "y"}
    del shared.store.entries[CONFIG], shared.store.entries[client]
    shared.run(shared.ledger.refresh_configs([CONFIG, client]))
    assert not shared.ledger.image.configs
    assert not shared.ledger.image.clients


def test_values_damaged_by_others_change_nothing(shared: SharedStore) -> None:
    before = shared.ledger.image
    for key in (TOPIC, STATE, CONFIG):
        shared.write(key, b"{")
    for work in (
        shared.ledger.refresh_topics(["t"]),
        shared.ledger.refresh_states([("t", 0)]),
        shared.ledger.refresh_configs([CONFIG]),
    ):
        with pytest.raises(StoreError, match="is damaged at"):
            shared.run(work)
    assert shared.ledger.image == before
    assert shared.ledger.knows_version(TOPIC, 5)
