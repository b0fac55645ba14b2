"""The entities that quotas and credentials belong to, and their keys and values in the metadata store.

=====================================  =================================================================
/config/users/U                        {"version":1,"config":{"producer_byte_rate":"1000",
                                       "SCRAM-SHA-256":"salt=...,stored_key=...,server_key=...,iterations=4096"}}
/config/users/U/clients/C              {"version":1,"config":{"request_percentage":"12.5"}}
/config/clients/C, /config/ips/A       the same
=====================================  =================================================================

The names are percent-encoded; <default> stands for all entities without a quota of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kafkacompat.metadata.znodes.paths import DEFAULT_NAME, decode_name, encode_name
from kafkacompat.security.scram import (
    SCRAM_MECHANISMS,
    ScramCredential,
    ScramMechanism,
    format_credential,
    parse_credential,
)

USER, CLIENT_ID, IP = "user", "client-id", "ip"

Entity = tuple[tuple[str, "str | None"], ...]
"""Pairs of a type (user, client-id, ip) and a name, by type; the name None is the default of its type."""

_FOLDERS = {USER: "users", CLIENT_ID: "clients", IP: "ips"}
_TYPES = {folder: kind for kind, folder in _FOLDERS.items()}
_ROOTS = tuple(f"/config/{folder}/" for folder in _TYPES)


class ClientConfig(NamedTuple):
    """The quotas and credentials of one entity; only a user without a client id has credentials."""

    quotas: Mapping[str, float] = {}
    credentials: Mapping[ScramMechanism, ScramCredential] = {}


def make_entity(pairs: Iterable[tuple[str, str | None]]) -> Entity:
    """Build an entity from pairs of a type and a name; of two pairs with one type, the later one counts."""
    return tuple(sorted(dict(pairs).items(), key=lambda pair: pair[0]))


def make_user_entity(user: str) -> Entity:
    """Build the entity that a user's credentials belong to."""
    return ((USER, user),)


def is_client_key(key: str) -> bool:
    """Return whether a key of the store belongs to an entity."""
    return key.startswith(_ROOTS)


def format_client_key(entity: Entity) -> str:
    """Build the key of an entity's quotas and credentials."""
    names = dict(entity)
    path = [f"{folder}/{_encode_name(names[kind])}" for kind, folder in _FOLDERS.items() if kind in names]
    return "/".join(["/config", *path])


def parse_client_key(key: str) -> Entity:
    """Parse a key that `client_key` built; raises KeyError."""
    parts = key.removeprefix("/config/").split("/")
    return make_entity(
        (_TYPES[folder], None if name == DEFAULT_NAME else decode_name(name))
        for folder, name in zip(parts[::2], parts[1::2], strict=True)
    )


def _encode_name(name: str | None) -> str:
    return DEFAULT_NAME if name is None else encode_name(name)


def format_client_values(config: ClientConfig) -> dict[str, str]:
    """Format an entity's quotas and credentials as texts."""
    credentials = config.credentials.items()
    return {
        **{key: _format_number(value) for key, value in config.quotas.items()},
        **{mechanism.sasl_name: format_credential(credential) for mechanism, credential in credentials},
    }


def parse_client_values(values: Mapping[str, str]) -> ClientConfig:
    """Parse the texts that `format_client_values` wrote; raises ValueError."""
    quotas = {key: float(text) for key, text in values.items() if key not in SCRAM_MECHANISMS}
    credentials = {
        SCRAM_MECHANISMS[key]: parse_credential(text) for key, text in values.items() if key in SCRAM_MECHANISMS
    }
    return ClientConfig(quotas, credentials)


def _format_number(value: float) -> str:
    """Write whole numbers without a point, as Kafka wrote the rates that count bytes."""
    return str(int(value)) if value.is_integer() else repr(value)
