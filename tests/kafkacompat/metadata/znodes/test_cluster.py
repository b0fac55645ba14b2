"""The znodes that a cluster has once."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from kafkacompat.metadata.store import StoreError
from kafkacompat.metadata.znodes import cluster
from kafkacompat.metadata.znodes.cluster import ControllerRegistration, FinalizedFeatures, MigrationState


def test_the_controller() -> None:
    value = cluster.encode_controller(3, 1_700_000_000_123)
    assert json.loads(value) == {
        "version": 2,
        "brokerid": 3,
        "timestamp": "1700000000123",
        "kraftControllerEpoch": -1,
    }
    assert cluster.decode_controller(value) == ControllerRegistration(3, -1)
    old = cluster.decode_controller(b'{"version":1,"brokerid":2,"timestamp":"1"}')
    assert old == ControllerRegistration(2, -1) and not old.is_kraft
    assert cluster.decode_controller(b'{"version":2,"brokerid":3000,"kraftControllerEpoch":0}').is_kraft


def test_the_controller_epoch() -> None:
    assert cluster.encode_controller_epoch(12) == b"12"
    assert cluster.decode_controller_epoch(b"12") == 12


def test_the_cluster_id() -> None:
    assert json.loads(cluster.encode_cluster_id("abc")) == {"version": "1", "id": "abc"}
    assert cluster.decode_cluster_id(cluster.encode_cluster_id("abc")) == "abc"


def test_the_features() -> None:
    features = FinalizedFeatures(True, {"metadata.version": 7})
    value = cluster.encode_features(features)
    assert json.loads(value) == {
        "version": 2,
        "status": 1,
        "features": {"metadata.version": {"max_version_level": 7}},
    }
    assert cluster.decode_features(value) == features
    assert json.loads(cluster.encode_features(FinalizedFeatures(False, {}), b'{"version":3,"epoch":4}')) == {
        "version": 3,
        "status": 0,
        "features": {},
        "epoch": 4,
    }


def test_the_features_of_2_8() -> None:
    value = b'{"version":1,"status":0,"features":{"f":{"min_version_level":1,"max_version_level":3}}}'
    assert cluster.decode_features(value) == FinalizedFeatures(False, {"f": 3})


def test_the_block_of_producer_ids() -> None:
    value = cluster.encode_producer_ids(7, range(1000, 2000))
    assert json.loads(value) == {"version": 1, "broker": 7, "block_start": "1000", "block_end": "1999"}
    assert cluster.decode_next_producer_id(value) == 2000
    assert cluster.decode_next_producer_id(b"") == 0
    assert json.loads(cluster.encode_producer_ids(7, range(2), b'{"version":1,"cell":2}'))["cell"] == 2


def test_a_migration() -> None:
    value = b'{"version":0,"kraft_controller_id":3000,"kraft_controller_epoch":5,"kraft_metadata_offset":7,"kraft_metadata_epoch":4}'
    assert cluster.decode_migration(value) == MigrationState(3000, 5, 7, 4)


@pytest.mark.parametrize(
    ("decode", "value", "problem"),
    [
        (cluster.decode_controller, b"5", "/controller: it is no JSON object"),
        (cluster.decode_controller, b'{"version":1}', '/controller: it has no "brokerid"'),
        (cluster.decode_controller, b'{"brokerid":-1}', '/controller: "brokerid" is -1, not a whole number from 0'),
        (cluster.decode_controller_epoch, b"", "/controller_epoch: it is b'', not a whole number from 0"),
        (cluster.decode_controller_epoch, b"1e3", "/controller_epoch: it is b'1e3', not"),
        (cluster.decode_controller_epoch, b"-1", "/controller_epoch: it is b'-1', not"),
        (cluster.decode_controller_epoch, b"9" * 10, "/controller_epoch: it is b'9999999999', not"),
        (cluster.decode_controller_epoch, b"9" * 100_000, "/controller_epoch: it is b'999"),
        (cluster.decode_controller_epoch, "٣".encode(), "/controller_epoch: it is b'"),
        (cluster.decode_cluster_id, b'{"id":""}', '/cluster/id: "id" is empty'),
        (cluster.decode_features, b'{"status":2,"features":{}}', '/feature: "status" is 2'),
        (cluster.decode_features, b'{"status":1}', '/feature: it has no "features"'),
        (cluster.decode_features, b'{"status":1,"features":{"f":{}}}', '/feature: it has no "max_version_level"'),
        (
            cluster.decode_next_producer_id,
            b'{"block_end":5}',
            '/latest_producer_id_block: "block_end" is 5, not a text',
        ),
        (
            cluster.decode_next_producer_id,
            b'{"block_end":"9223372036854775807"}',
            "/latest_producer_id_block: it is b'9",
        ),
        (cluster.decode_migration, b'{"version":0}', '/migration: it has no "kraft_controller_id"'),
    ],
)
def test_damage(decode: Callable[[bytes], object], value: bytes, problem: str) -> None:
    with pytest.raises(StoreError) as error:
        decode(value)
    assert str(error.value).startswith(f"the metadata is damaged at {problem}")
    assert len(str(error.value)) < 500
