"""No name or id of a message is forgotten: each field says what it names, or is listed here as other text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from kafkacompat.handlers import SERVED, SERVED_BETWEEN_BROKERS, SERVED_WITH_TELEMETRY
from kafkacompat.handlers.tenants.table import TENANT_APIS
from kafkacompat.tenancy.mapping import find_mapper
from kafkacompat.wire.apis import API_NAMES, find_api
from kafkacompat.wire.entities import BROKER, ENTITIES, NAME_FILTER, SIBLINGS
from kafkacompat.wire.schema import Field, Message, Struct
from tests.wire.random_messages import versions_of

OTHER_TEXTS = {
    "address of a broker, a controller or a client": {
        "client_host",
        "client_host_address",
        "host",
        "host_filter",
        "host_name",
        "v0_host",
    },
    "rack": {"rack", "rack_id"},
    "id of a member, drawn by the broker or the client": {
        "group_instance_id",
        "instance_id",
        "leader",
        "member_id",
        "process_id",
    },
    "id that a client has given itself": {"client_id", "client_software_name", "client_software_version"},
    "note that a client keeps with an offset, or sends with a request": {"committed_metadata", "metadata", "reason"},
    "name of a state, a type, a protocol or an assignor": {
        "assignor_name",
        "entity_type",
        "group_state",
        "group_type",
        "owner_principal_type",
        "principal_type",
        "protocol_data",
        "protocol_name",
        "protocol_type",
        "server_assignor",
        "state_filters",
        "states_filter",
        "token_requester_principal_type",
        "transaction_state",
        "types_filter",
        "unknown_state_filters",
    },
    "login": {"auth_bytes", "hmac", "mechanism", "mechanisms", "salt", "salted_password", "token_id"},
    "name or value of a config, a quota or a metric": {
        "configuration_keys",
        "documentation",
        "key",
        "metrics",
        "requested_metrics",
        "value",
    },
    "name of a feature or a listener": {"feature", "listener"},
    "directory or start of a broker or a controller": {
        "candidate_directory_id",
        "cordoned_log_dirs",
        "id",
        "incarnation_id",
        "log_dirs",
        "offline_log_dirs",
        "replica_directory_id",
        "voter_directory_id",
    },
    "message in a message": {"request_data", "request_principal", "response_data"},
    "part of a Streams topology": {"subtopology_id"},
}
NAMED_OTHERWISE = {
    "AlterableConfig": "config",
    "CreatableTopicConfig": "config",
    "CreatableTopicConfigs": "config",
    "DescribeConfigsResourceResult": "config",
    "DescribeConfigsSynonym": "config",
    "Feature": "feature",
    "FinalizedFeatureKey": "feature",
    "JoinGroupRequestProtocol": "protocol",
    "LeaderEndpoint": "listener",
    "Listener": "listener",
    "SupportedFeatureKey": "feature",
}
"""Structs whose ``name`` is not a topic's or a user's."""
BROKER_FIELDS = frozenset(
    {"broker_id", "controller_id", "isr_nodes", "leader_id", "node_id", "replica_id", "replica_nodes"}
)
REFUSED_TO_TENANTS = {
    34: "the directories of a broker are its operator's",
    45: "the operator places the partitions of an instance",
    55: "the quorum is the whole cluster's",
    57: "features are the whole cluster's",
    64: "brokers are the whole cluster's",
    71: "clients' metrics go to the operator, whose subscriptions name no instance",
    72: "clients' metrics go to the operator, whose subscriptions name no instance",
    80: "the quorum is the whole cluster's",
    81: "the quorum is the whole cluster's",
} | dict.fromkeys(SERVED_BETWEEN_BROKERS, "only brokers send it")


class Declared(NamedTuple):
    """One field that holds a name or a text, or their elements."""

    where: str
    struct: str
    name: str
    leaf: Field
    entity: str | None


def _list_messages() -> list[type[Message]]:
    return [message for key in API_NAMES for message in find_api(key)]


def _walk(cls: type[Struct], where: str) -> Iterator[Declared]:
    for name, field in cls.FIELDS.items():
        leaf = field if field.element is None else field.element
        if leaf.struct is not None:
            yield from _walk(leaf.struct, where)
        else:
            yield Declared(where, cls.__name__, name, leaf, leaf.entity or field.entity)


ALL_FIELDS = [field for message in _list_messages() for field in _walk(message, message.__name__)]
TEXTS = [field for field in ALL_FIELDS if field.leaf.kind in ("string", "uuid", "bytes")]


def test_each_text_or_id_says_what_it_names_or_is_listed_as_other_text() -> None:
    listed = set().union(*OTHER_TEXTS.values())
    forgotten = [
        f"{field.where}: {field.struct}.{field.name}"
        for field in TEXTS
        if field.entity is None
        and field.name not in listed
        and not (field.name == "name" and field.struct in NAMED_OTHERWISE)
    ]
    assert not forgotten


def test_no_entry_of_other_texts_is_left_over() -> None:
    plain = {field.name for field in TEXTS if field.entity is None}
    assert set().union(*OTHER_TEXTS.values()) <= plain
    assert {field.struct for field in TEXTS if field.entity is None and field.name == "name"} == NAMED_OTHERWISE.keys()


def test_fields_name_known_entities() -> None:
    assert {field.entity for field in ALL_FIELDS} - {None} <= ENTITIES


def test_fields_with_ids_of_brokers_say_so() -> None:
    numbers = [field for field in ALL_FIELDS if field.leaf.kind == "int32" and field.name in BROKER_FIELDS]
    assert numbers and all(field.entity == BROKER for field in numbers)


def test_a_name_whose_kind_is_in_another_field_has_that_field() -> None:
    for message in _list_messages():
        for struct in _list_structs(message):
            for name, field in struct.FIELDS.items():
                for sibling in SIBLINGS.get(field.entity or "", ()):
                    # The key type of a coordinator is in the request alone.
                    if struct.__name__ not in ("Coordinator", "ComponentData"):
                        assert {sibling, f"{sibling}_filter", f"resource_{sibling}"} & struct.FIELDS.keys(), (
                            struct.__name__,
                            name,
                        )


def _list_structs(cls: type[Struct]) -> Iterator[type[Struct]]:
    yield cls
    for field in cls.FIELDS.values():
        leaf = field if field.element is None else field.element
        if leaf.struct is not None:
            yield from _list_structs(leaf.struct)


def test_each_served_api_is_served_to_tenants_or_refused_for_a_reason() -> None:
    served = SERVED.keys() | SERVED_WITH_TELEMETRY.keys() | SERVED_BETWEEN_BROKERS.keys()
    assert TENANT_APIS.keys() <= served
    assert served - TENANT_APIS.keys() == REFUSED_TO_TENANTS.keys()


@pytest.mark.parametrize("key", TENANT_APIS)
def test_every_version_of_an_api_of_tenants_can_be_translated(key: int) -> None:
    for message, version in versions_of(*find_api(key)):
        assert (find_mapper(message, version) is not None) == _holds_names(message, version), (message, version)


def _holds_names(cls: type[Struct], version: int) -> bool:
    """Return whether a version of a message has a field that the translation changes; hooks read the filters of names."""
    for field in cls.FIELDS.values():
        leaf = field if field.element is None else field.element
        entity = leaf.entity or field.entity
        if version in field.versions and (
            entity not in (None, BROKER, NAME_FILTER)
            or (leaf.struct is not None and _holds_names(leaf.struct, version))
        ):
            return True
    return False
