"""The values of the znodes that a cluster has once: controller, epoch, cluster id, features, producer ids, migration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from kafkacompat.metadata.producer_ids import BLOCK_SIZE
from kafkacompat.metadata.znodes.paths import Znode
from kafkacompat.metadata.znodes.values import (
    INT32_MAX,
    INT64_MAX,
    Schema,
    build_damage_error,
    encode_json,
    parse_fields,
    parse_number,
)

_NO_KRAFT_CONTROLLER = -1
_FEATURE = Schema(2, "status", "features")
_PRODUCER_IDS = Schema(1, "broker", "block_start", "block_end")
_DISABLED, _ENABLED = 0, 1
_MAX_INT16 = 2**15 - 1


class ControllerRegistration(NamedTuple):
    """The value of /controller; ``kraft_epoch`` is -1 unless a KRaft controller holds it during a migration (KIP-866)."""

    node_id: int
    kraft_epoch: int

    @property
    def is_kraft(self) -> bool:
        """Return whether a KRaft controller has taken the cluster over."""
        return self.kraft_epoch > _NO_KRAFT_CONTROLLER


class FinalizedFeatures(NamedTuple):
    """The value of /feature: the level of each feature in the cluster (KIP-584), which count only if they are enabled."""

    is_enabled: bool
    levels: Mapping[str, int]


class MigrationState(NamedTuple):
    """The value of /migration: how far a KRaft controller has written its metadata to ZooKeeper (KIP-866)."""

    kraft_controller_id: int
    kraft_controller_epoch: int
    kraft_metadata_offset: int
    kraft_metadata_epoch: int


def encode_controller(node_id: int, timestamp_ms: int) -> bytes:
    """Encode the value of /controller, in version 2."""
    values = {"version": 2, "brokerid": node_id, "timestamp": str(timestamp_ms)}
    return encode_json({**values, "kraftControllerEpoch": _NO_KRAFT_CONTROLLER})


def decode_controller(value: bytes) -> ControllerRegistration:
    """Decode the value of /controller, of version 1 or newer; raises StoreError."""
    fields = parse_fields(Znode.CONTROLLER.path(), value)
    return ControllerRegistration(
        fields.integer("brokerid", low=0), fields.integer("kraftControllerEpoch", _NO_KRAFT_CONTROLLER)
    )


def encode_controller_epoch(epoch: int) -> bytes:
    """Encode the value of /controller_epoch."""
    return b"%d" % epoch


def decode_controller_epoch(value: bytes) -> int:
    """Decode the value of /controller_epoch; raises StoreError."""
    return parse_number(Znode.CONTROLLER_EPOCH.path(), value, low=0, high=INT32_MAX)


def encode_cluster_id(cluster_id: str) -> bytes:
    """Encode the value of /cluster/id."""
    return encode_json({"version": "1", "id": cluster_id})


def decode_cluster_id(value: bytes) -> str:
    """Decode the value of /cluster/id; raises StoreError."""
    path = Znode.CLUSTER_ID.path()
    cluster_id = parse_fields(path, value).text("id")
    if not cluster_id:
        raise build_damage_error(path, '"id" is empty')
    return cluster_id


def encode_features(features: FinalizedFeatures, before: bytes | None = None) -> bytes:
    """Encode the value of /feature in version 2, over the stored value *before*."""
    values: dict[str, Any] = {
        "status": _ENABLED if features.is_enabled else _DISABLED,
        "features": {name: {"max_version_level": level} for name, level in features.levels.items()},
    }
    return _FEATURE.encode(Znode.FEATURE.path(), values, before)


def decode_features(value: bytes) -> FinalizedFeatures:
    """Decode the value of /feature, of version 1 or newer; raises StoreError.

    Version 1 has a "min_version_level", too, which no release uses.
    """
    fields = parse_fields(Znode.FEATURE.path(), value)
    features = fields.nested("features")
    levels = {
        name: features.nested(name).integer("max_version_level", low=1, high=_MAX_INT16) for name in features.values
    }
    return FinalizedFeatures(fields.integer("status", low=_DISABLED, high=_ENABLED) == _ENABLED, levels)


def encode_producer_ids(node_id: int, block: range, before: bytes | None = None) -> bytes:
    """Encode the value of /latest_producer_id_block: the block that was allocated last, over the stored value *before*."""
    values = {"broker": node_id, "block_start": str(block.start), "block_end": str(block.stop - 1)}
    return _PRODUCER_IDS.encode(Znode.PRODUCER_IDS.path(), values, before)


def decode_next_producer_id(value: bytes) -> int:
    """Decode the value of /latest_producer_id_block and return the first producer id that was never allocated.

    The value is empty until the first block is allocated. Raises StoreError.
    """
    if not value:
        return 0
    path = Znode.PRODUCER_IDS.path()
    block_end = parse_fields(path, value).text("block_end").encode()
    return parse_number(path, block_end, low=0, high=INT64_MAX - BLOCK_SIZE) + 1


def decode_migration(value: bytes) -> MigrationState:
    """Decode the value of /migration, which KRaft controllers alone write; raises StoreError."""
    fields = parse_fields(Znode.MIGRATION.path(), value)
    return MigrationState(
        fields.integer("kraft_controller_id"),
        fields.integer("kraft_controller_epoch"),
        fields.integer("kraft_metadata_offset", low=-INT64_MAX, high=INT64_MAX),
        fields.integer("kraft_metadata_epoch"),
    )
