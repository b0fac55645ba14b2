"""Whatever stands in a znode: its value is decoded, or one sentence names its path."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kafkacompat.metadata.codec import decode_store
from kafkacompat.metadata.store import StoreEntry, StoreError
from kafkacompat.metadata.znodes import administration, brokers, cluster, configs, topics

HOSTILE: list[Any] = [
    None,
    True,
    0,
    -1,
    2**63,
    10**400,
    1.5,
    1e300,
    "",
    "x" * 100_000,
    "\n",
    "\ud800",
    "-1",
    [],
    [[]],
    [None],
    {},
    {"": None},
    {"\n": {"0": [1]}},
]

DECODERS: list[tuple[str, Callable[[bytes], object], Any]] = [
    ("/brokers/ids/1", lambda value: brokers.decode_broker(1, value, 5), {"version": 1, "host": "h", "port": 1}),
    (
        "/brokers/ids/1",
        lambda value: brokers.decode_broker(1, value, 5),
        {
            "version": 5,
            "endpoints": ["A://h:1"],
            "listener_security_protocol_map": {"A": "SSL"},
            "rack": "r",
            "features": {"f": {"min_version": 1, "max_version": 2}},
            "kafkacompat": {"directory_ids": ["d"], "boot_id": "b", "lacks_replicas": 1, "lacks_records": 0},
        },
    ),
    (
        "/brokers/topics/t",
        lambda value: topics.decode_topic("t", value),
        {
            "version": 3,
            "topic_id": "AAECAwQFBgcICQoLDA0ODw",
            "partitions": {"0": [1, 2]},
            "adding_replicas": {"0": [2]},
            "removing_replicas": {"0": [1]},
        },
    ),
    (
        "/brokers/topics/t/partitions/0/state",
        lambda value: topics.decode_partition_state("t", 0, value),
        {
            "version": 1,
            "leader": 1,
            "leader_epoch": 0,
            "controller_epoch": 1,
            "isr": [1],
            "leader_recovery_state": 1,
        },
    ),
    ("/controller", cluster.decode_controller, {"version": 2, "brokerid": 1, "kraftControllerEpoch": -1}),
    ("/cluster/id", cluster.decode_cluster_id, {"version": "1", "id": "abc"}),
    (
        "/feature",
        cluster.decode_features,
        {"version": 2, "status": 1, "features": {"f": {"max_version_level": 1}}},
    ),
    ("/latest_producer_id_block", cluster.decode_next_producer_id, {"version": 1, "block_end": "999"}),
    (
        "/migration",
        cluster.decode_migration,
        {
            "kraft_controller_id": 1,
            "kraft_controller_epoch": 1,
            "kraft_metadata_offset": 1,
            "kraft_metadata_epoch": 1,
        },
    ),
    ("/config/users/u", lambda value: configs.decode_config("/config/users/u", value), {"config": {"a": "1"}}),
    ("/x", lambda value: configs.decode_config_change("/x", value), {"version": 2, "entity_path": "topics/t"}),
    (
        "/x",
        lambda value: configs.decode_config_change("/x", value),
        {"version": 1, "entity_type": "topics", "entity_name": "t"},
    ),
    (
        "/admin/reassign_partitions",
        administration.decode_reassignment,
        {"partitions": [{"topic": "t", "partition": 0, "replicas": [1]}]},
    ),
    (
        "/x",
        lambda value: administration.decode_isr_change("/x", value),
        {"partitions": [{"topic": "t", "partition": 0}]},
    ),
    ("/x", lambda value: administration.decode_log_dir_event("/x", value), {"broker": 1, "event": 1}),
]


def damage_value(value: Any) -> Iterator[Any]:
    """Yield copies of a JSON value in which one part is hostile."""
    yield from HOSTILE
    if isinstance(value, dict):
        for name, part in value.items():
            yield {other: value[other] for other in value if other != name}
            yield from ({**value, name: damaged} for damaged in damage_value(part))
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from ([*value[:index], damaged, *value[index + 1 :]] for damaged in damage_value(part))


def check_outcome(path: str, decode: Callable[[bytes], object], value: bytes) -> bool:
    """Decode a value; returns whether it was refused, by one sentence of bounded length."""
    try:
        decode(value)
    except StoreError as error:
        message = str(error)
        assert message.startswith(f"the metadata is damaged at {path}: ")
        assert len(message) < 1000
        assert "\n" not in message
        return True
    return False


@pytest.mark.parametrize(("path", "decode", "value"), DECODERS, ids=lambda item: item if isinstance(item, str) else "")
def test_every_damaged_field(path: str, decode: Callable[[bytes], object], value: Any) -> None:
    assert not check_outcome(path, decode, json.dumps(value).encode())
    refused = [check_outcome(path, decode, json.dumps(damaged).encode()) for damaged in damage_value(value)]
    assert sum(refused) > len(HOSTILE) / 2


@pytest.mark.parametrize(("path", "decode", "value"), DECODERS, ids=lambda item: item if isinstance(item, str) else "")
def test_every_cut_value(path: str, decode: Callable[[bytes], object], value: Any) -> None:
    text = json.dumps(value).encode()
    assert all(check_outcome(path, decode, text[:length]) for length in range(1, len(text)))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("/brokers/topics/t", {"partitions": {"0": [1]}}),
        ("/config/topics/t", {"config": {"a": "1"}}),
        ("/config/users/u", {"config": {"producer_byte_rate": "1"}}),
        ("/config/users/u", {"config": {"SCRAM-SHA-256": "salt=,stored_key=,server_key=,iterations=4096"}}),
        ("/cluster/id", {"id": "abc"}),
    ],
)
def test_a_store_with_a_damaged_value(path: str, value: Any) -> None:
    def decode(value: bytes) -> object:
        return decode_store({path: StoreEntry(value, 0)})

    assert not check_outcome(path, decode, json.dumps(value).encode())
    refused = [check_outcome(path, decode, json.dumps(damaged).encode()) for damaged in damage_value(value)]
    assert sum(refused) > len(HOSTILE) / 2
