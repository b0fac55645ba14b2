"""The ledger writes over what it has read, also over what a newer release wrote."""

from __future__ import annotations

import json

from twisted.internet.defer import Deferred

from kafkacompat.config.resources import ResourceType
from kafkacompat.metadata.draft import MetadataDraft
from kafkacompat.metadata.ledger import MetadataLedger
from kafkacompat.metadata.store import StoreEntry
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


def test_a_block_of_producer_ids_keeps_what_it_does_not_know() -> None:
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
