"""The values of the znodes below /config: the configs of entities, and the notifications of their changes."""

from __future__ import annotations

from collections.abc import Mapping

from kafkacompat.metadata.znodes.paths import CONFIG_KINDS, OWN_CONFIG_KINDS, Znode, identify_path
from kafkacompat.metadata.znodes.values import (
    Fields,
    Schema,
    build_damage_error,
    encode_json,
    parse_fields,
    parse_json,
)

CONFIG = Schema(1, "config")

_ROOT = "/config/"


def encode_config(path: str, configs: Mapping[str, str], before: bytes | None = None) -> bytes:
    """Encode the configs of one entity, over the stored value *before*."""
    return CONFIG.encode(path, {"config": dict(configs)}, before)


def decode_config(path: str, value: bytes) -> dict[str, str]:
    """Decode the configs of one entity; raises StoreError, whose message shows no config.

    A znode that is only the parent of others has an empty value.
    """
    return read_config(parse_fields(path, value, secret=True)) if value else {}


def read_config(fields: Fields) -> dict[str, str]:
    """Read the parsed configs of one entity; raises StoreError."""
    return fields.text_by_name("config", {})


def encode_config_change(config_path: str) -> bytes:
    """Encode the notification that the configs at a path were changed, in version 2."""
    return encode_json({"version": 2, "entity_path": config_path.removeprefix(_ROOT)})


def decode_config_change(path: str, value: bytes) -> str:
    """Decode the notification at *path* and return the path of the changed configs; raises StoreError.

    Version 1 has the kind and the name of the entity. Before 0.9 the value was a topic's name as a JSON text.
    """
    if isinstance(topic := parse_json(path, value), str):
        return _check_config_path(path, f"topics/{topic}")
    fields = parse_fields(path, value)
    if fields.integer("version", low=1) == 1:
        return _check_config_path(path, f"{fields.text('entity_type')}/{fields.text('entity_name')}")
    return _check_config_path(path, fields.text("entity_path"))


def _check_config_path(path: str, entity_path: str) -> str:
    config_path = f"{_ROOT}{entity_path}"
    znode, names = identify_path(config_path) or (None, {})
    kinds = (*CONFIG_KINDS, *OWN_CONFIG_KINDS)
    if znode is not Znode.CLIENT_OF_USER and not (znode is Znode.CONFIG and names["kind"] in kinds):
        raise build_damage_error(path, f"it names {entity_path[:300]!r}, which is no entity with configs")
    return config_path
