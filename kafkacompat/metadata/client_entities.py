"""Whom quotas are for, and where what is set for users, client ids and addresses is kept.

=====================================  =================================================================
/config/users/U                        {"version":1,"config":{"producer_byte_rate":"1000",
                                       "SCRAM-SHA-256":"salt=...,stored_key=...,server_key=...,iterations=4096"}}
/config/users/U/clients/C              {"version":1,"config":{"request_percentage":"12.5"}}
/config/clients/C, /config/ips/A       the same
=====================================  =================================================================

The names are percent-encoded; <default> stands for all that have no quota of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple
from urllib.parse import quote, unquote

from kafkacompat.metadata.scram import ScramCredential, ScramMechanism, credential_text, parse_credential

USER, CLIENT_ID, IP = "user", "client-id", "ip"

Entity = tuple[tuple[str, "str | None"], ...]
"""Pairs of a type (user, client-id, ip) and a name, by type; the name None is the default of its type."""

_FOLDERS = {USER: "users", CLIENT_ID: "clients", IP: "ips"}
_TYPES = {folder: kind for kind, folder in _FOLDERS.items()}
_ROOTS = tuple(f"/config/{folder}/" for folder in _TYPES)
_DEFAULT_NAME = "<default>"
_MECHANISMS = {mechanism.sasl_name: mechanism for mechanism in ScramMechanism}


class ClientConfig(NamedTuple):
    """What is set for one entity; only a user without a client id has credentials."""

    quotas: Mapping[str, float] = {}
    credentials: Mapping[ScramMechanism, ScramCredential] = {}


def make_entity(pairs: Iterable[tuple[str, str | None]]) -> Entity:
    """An entity of these pairs; of two with the same type the later one counts."""
    return tuple(sorted(dict(pairs).items(), key=lambda pair: pair[0]))


def user_entity(user: str) -> Entity:
    """The entity that a user's credentials belong to."""
    return ((USER, user),)


def is_client_key(key: str) -> bool:
    """Whether a store's key belongs to an entity."""
    return key.startswith(_ROOTS)


def client_key(entity: Entity) -> str:
    """The key of what is set for an entity."""
    names = dict(entity)
    path = [f"{folder}/{_encoded(names[kind])}" for kind, folder in _FOLDERS.items() if kind in names]
    return "/".join(["/config", *path])


def parse_client_key(key: str) -> Entity:
    """Read what `client_key` writes; raises KeyError."""
    parts = key.removeprefix("/config/").split("/")
    return make_entity(
        (_TYPES[folder], None if name == _DEFAULT_NAME else unquote(name))
        for folder, name in zip(parts[::2], parts[1::2], strict=True)
    )


def _encoded(name: str | None) -> str:
    return _DEFAULT_NAME if name is None else quote(name, safe="")


def client_values(config: ClientConfig) -> dict[str, str]:
    """The texts that an entity's value is made of."""
    return {
        **{key: _number_text(value) for key, value in config.quotas.items()},
        **{mechanism.sasl_name: credential_text(each) for mechanism, each in config.credentials.items()},
    }


def parse_client_values(values: Mapping[str, str]) -> ClientConfig:
    """Read what `client_values` writes; raises ValueError."""
    quotas = {key: float(text) for key, text in values.items() if key not in _MECHANISMS}
    credentials = {_MECHANISMS[key]: parse_credential(text) for key, text in values.items() if key in _MECHANISMS}
    return ClientConfig(quotas, credentials)


def _number_text(value: float) -> str:
    """Whole numbers without a point, as Kafka wrote the rates that count bytes."""
    return str(int(value)) if value.is_integer() else repr(value)
